// SPDX-License-Identifier: Apache-2.0
//! No request gets an object of another site, whatever host, server name and path the request has.

use super::world::World;
use sluice_fake::sites::{Rng, SiteRequest, Verdict};
use sluice_tests::client::{Client, Failure, Response, request};
use sluice_tests::edge::tls::connect_trusting_for;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;

const HOSTS: [&str; 12] = [
    "b0.test",
    "b1.test",
    "h0.test",
    "h1.test",
    "paths.test",
    "paths.test",
    "paths.test",
    "deep.test",
    "x.deep.test",
    "s0.test",
    "s1.test",
    "other.test",
];
const CLIENTS: u64 = 8;
const REQUESTS: usize = 1_250;

/// A client with a connection in cleartext, and one for each server name.
struct Pool {
    cleartext: SocketAddr,
    secure: SocketAddr,
    plain: Option<Client>,
    named: HashMap<String, Client<TlsStream<TcpStream>>>,
}

impl Pool {
    async fn exchange(&mut self, name: Option<&str>, bytes: &[u8]) -> Result<Response, Failure> {
        let Some(name) = name else {
            let mut client = match self.plain.take() {
                Some(client) => client,
                None => Client::connect(self.cleartext).await,
            };
            let response = client.try_exchange(bytes).await?;
            self.plain = Some(client).filter(|_| stays(&response));
            return Ok(response);
        };
        let mut client = match self.named.remove(name) {
            Some(client) => client,
            None => Client::on(connect_trusting_for(self.secure, name).await.unwrap()),
        };
        let response = client.try_exchange(bytes).await?;
        if stays(&response) {
            self.named.insert(name.to_owned(), client);
        }
        Ok(response)
    }
}

fn stays(response: &Response) -> bool {
    response.header("connection") != "close"
}

/// The request as Envoy understands it: the host of an absolute target is that of the request.
fn understood(request: &SiteRequest) -> SiteRequest {
    let mut request = request.clone();
    if let Some((_, rest)) = request.path.clone().split_once("://")
        && !request.path.starts_with('/')
    {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        request.authority = rest[..end].to_owned();
    }
    request
}

/// Sends requests and counts the answers by their status.
async fn fuzz(world: Arc<World>, mut pool: Pool, seed: u64) -> HashMap<u16, usize> {
    let mut rng = Rng::new(seed);
    let mut counts = HashMap::new();
    for _ in 0..REQUESTS {
        let mut asked = SiteRequest::among(&mut rng, &HOSTS);
        asked.scheme = if asked.server_name.is_some() {
            "https"
        } else {
            "http"
        };
        let bytes = request("GET", &asked.path, &[("host", &asked.authority)]);
        let name = asked
            .server_name
            .as_ref()
            .map(|name| name.to_ascii_lowercase());
        let Ok(response) = pool.exchange(name.as_deref(), &bytes).await else {
            *counts.entry(0).or_default() += 1;
            continue;
        };
        let verdict = world.table.verdict(&understood(&asked));
        let shown = || format!("{asked:?}: {verdict:?}, but {response}");
        match (response.status, verdict) {
            (200, Verdict::Site(site)) => {
                let body = String::from_utf8_lossy(&response.body);
                assert_eq!(body, world.table.sites[site].name, "{}", shown());
            }
            (200 | 301, Verdict::Misdirected | Verdict::NoSite) => panic!("{}", shown()),
            (301, Verdict::Site(site)) => {
                assert_eq!(world.table.sites[site].name, "s0", "{}", shown());
            }
            (421, verdict) => assert_eq!(verdict, Verdict::Misdirected, "{}", shown()),
            _ => {}
        }
        *counts.entry(response.status).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn ten_thousand_requests_find_nothing_of_another_site() {
    let world = Arc::new(World::twenty().await);
    let edge = world.start().await;
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for seed in 0..CLIENTS {
        let pool = Pool {
            cleartext: edge.address(),
            secure: world.secure_address(),
            plain: None,
            named: HashMap::new(),
        };
        clients.spawn(fuzz(Arc::clone(&world), pool, seed));
    }
    let mut counts = HashMap::<u16, usize>::new();
    while let Some(client) = clients.join_next().await {
        for (status, count) in client.unwrap() {
            *counts.entry(status).or_default() += count;
        }
    }
    let took = began.elapsed();
    println!("{counts:?} in {took:?}");
    for status in [200, 301, 400, 404, 421] {
        assert!(
            counts.get(&status).is_some_and(|count| *count > 50),
            "{counts:?}"
        );
    }
    assert!(took < Duration::from_secs(40), "{took:?}");
}
