// SPDX-License-Identifier: Apache-2.0
//! The DNS of a cluster, as CoreDNS has it: the names of Services, and of the pods of a Service without an address.

use super::api::Api;
use crate::machine::names::NameServer;
use crate::server::background::Background;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

/// The address of the server, in the network of Services.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 10);
/// The domain of all names.
pub const DOMAIN: &str = "cluster.local";
/// The port of DNS.
const PORT: u16 = 53;
/// The time between two looks at the Services.
const PERIOD: Duration = Duration::from_millis(500);

/// Names with their addresses.
type Names = BTreeMap<String, Vec<Ipv4Addr>>;

/// Starts the server, which ends when it is dropped.
#[must_use]
pub fn start(api: Api) -> Background {
    Background::start("dns", async move {
        let server = NameServer::start_at((ADDRESS, PORT).into()).await;
        let mut known = Names::new();
        loop {
            if let Some(names) = names(api).await {
                let gone = known.keys().filter(|name| !names.contains_key(*name));
                gone.for_each(|name| server.set(name, &[]));
                for (name, addresses) in &names {
                    server.set(name, addresses);
                }
                known = names;
            }
            tokio::time::sleep(PERIOD).await;
        }
    })
}

/// The current names. `None`: the API server does not answer.
async fn names(api: Api) -> Option<Names> {
    let mut names = Names::new();
    for service in api.list("/api/v1/services").await? {
        if let Some(Ok(address)) = service["spec"]["clusterIP"].as_str().map(str::parse) {
            names.insert(
                name_of(&service, &service["metadata"]["name"]),
                vec![address],
            );
        }
    }
    let slices = api.list("/apis/discovery.k8s.io/v1/endpointslices").await?;
    for slice in &slices {
        // A Service without an address has this label.
        let labels = &slice["metadata"]["labels"];
        if labels["service.kubernetes.io/headless"].is_string() {
            let service = name_of(slice, &labels["kubernetes.io/service-name"]);
            add_pods(&mut names, &service, slice);
        }
    }
    Some(names)
}

/// The name of a Service in the namespace of an object.
fn name_of(object: &Value, service: &Value) -> String {
    let namespace = object["metadata"]["namespace"].as_str().unwrap();
    format!("{}.{namespace}.svc.{DOMAIN}", service.as_str().unwrap())
}

/// Adds the names of the pods that are ready, or whose Service publishes all.
fn add_pods(names: &mut Names, service: &str, slice: &Value) {
    for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
        if endpoint["conditions"]["ready"] != true {
            continue;
        }
        let addresses = endpoint["addresses"].as_array().unwrap().iter();
        let addresses = addresses.filter_map(|text| text.as_str().unwrap().parse().ok());
        for address in addresses {
            names.entry(service.to_owned()).or_default().push(address);
            if let Some(host) = endpoint["hostname"].as_str() {
                names
                    .entry(format!("{host}.{service}"))
                    .or_default()
                    .push(address);
            }
        }
    }
}
