// SPDX-License-Identifier: Apache-2.0
//! A load balancer for a Service, at the address of the Service. It learns changes of the endpoints late, as balancers
//! do.

use super::api::Api;
use crate::eventually;
use crate::server::Server;
use crate::server::background::Background;
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

/// The time after which the balancer follows a change of the endpoints.
pub const DELAY: Duration = Duration::from_millis(1_500);
/// The time between two looks at the endpoints.
const PERIOD: Duration = Duration::from_millis(100);

/// The endpoints that get connections.
#[derive(Default)]
struct Endpoints {
    current: Mutex<Vec<SocketAddr>>,
    turn: AtomicUsize,
}

/// A running balancer. Dropping it ends its connections.
pub struct Balancer {
    server: Server,
    _follower: Background,
    endpoints: Arc<Endpoints>,
}

impl Balancer {
    /// Starts a balancer for the port `http` of a Service, and waits until it has an endpoint.
    ///
    /// # Panics
    /// When the Service does not exist.
    pub async fn start(api: Api, namespace: &str, service: &str) -> Self {
        let path = format!("/api/v1/namespaces/{namespace}/services/{service}");
        let object = api.get(&path).await.expect("a Service");
        let address: IpAddr = object["spec"]["clusterIP"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let mut ports = object["spec"]["ports"].as_array().unwrap().iter();
        let port = ports.find(|port| port["name"] == "http").unwrap()["port"].as_u64();
        let address = SocketAddr::new(address, u16::try_from(port.unwrap()).unwrap());
        let endpoints = Arc::new(Endpoints::default());
        let served = Arc::clone(&endpoints);
        let server = Server::start_at("balancer", address, move |client, _| {
            let served = Arc::clone(&served);
            async move { forward(client, &served).await }
        });
        let slices = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices\
             ?labelSelector=kubernetes.io/service-name={service}"
        );
        let followed = Arc::clone(&endpoints);
        let follower = Background::start("endpoints", follow(api, slices, followed));
        let balancer = Self {
            server,
            _follower: follower,
            endpoints,
        };
        eventually("an endpoint", async || !balancer.endpoints().is_empty()).await;
        balancer
    }

    /// The address of the Service.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The endpoints that get connections now.
    ///
    /// # Panics
    /// When another thread has panicked with them.
    #[must_use]
    pub fn endpoints(&self) -> Vec<SocketAddr> {
        self.endpoints.current.lock().unwrap().clone()
    }
}

/// Connects the client with the next endpoint that accepts the connection.
async fn forward(mut client: TcpStream, endpoints: &Endpoints) -> io::Result<()> {
    let current = endpoints.current.lock().unwrap().clone();
    let turn = endpoints.turn.fetch_add(1, Ordering::Relaxed);
    for number in 0..current.len() {
        let address = current[(turn + number) % current.len()];
        if let Ok(mut server) = TcpStream::connect(address).await {
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            copy_bidirectional(&mut client, &mut server).await?;
            return Ok(());
        }
    }
    Err(io::ErrorKind::ConnectionRefused.into())
}

/// Applies each change of the endpoints after the delay.
async fn follow(api: Api, path: String, endpoints: Arc<Endpoints>) {
    let mut last = Vec::new();
    let mut changes = VecDeque::new();
    loop {
        if let Some(slices) = api.list(&path).await {
            let ready = ready(&slices);
            if ready != last {
                last.clone_from(&ready);
                changes.push_back((Instant::now() + DELAY, ready));
            }
        }
        while changes
            .front()
            .is_some_and(|(due, _)| *due <= Instant::now())
        {
            let due = changes.pop_front().map(|(_, ready)| ready);
            *endpoints.current.lock().unwrap() = due.unwrap_or_default();
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// The addresses of the endpoints that are ready, at the port `http`.
fn ready(slices: &[Value]) -> Vec<SocketAddr> {
    let mut all = Vec::new();
    for slice in slices {
        let mut ports = slice["ports"].as_array().into_iter().flatten();
        let Some(port) = ports.find(|port| port["name"] == "http") else {
            continue;
        };
        let port = u16::try_from(port["port"].as_u64().unwrap()).unwrap();
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            if endpoint["conditions"]["ready"] == true {
                let address: IpAddr = endpoint["addresses"][0].as_str().unwrap().parse().unwrap();
                all.push(SocketAddr::new(address, port));
            }
        }
    }
    all.sort_unstable();
    all
}
