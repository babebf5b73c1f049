// SPDX-License-Identifier: Apache-2.0
//! Clients of one key.

use super::scene::Scene;
use super::{ARRIVAL, ORIGIN, REST};
use sluice_tests::client::{Client, Failure, Response, request};
use sluice_tests::origin::Origin;
use sluice_tests::server::gate::Gate;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Result of a client, and its time.
pub struct Answer {
    pub response: Result<Response, Failure>,
    pub took: Duration,
}

pub async fn ask(client: &mut Client, target: &str) -> Answer {
    let asked = Instant::now();
    let response = client.try_exchange(request("GET", target, &[])).await;
    Answer {
        response,
        took: asked.elapsed(),
    }
}

/// Sends a request on a connection, if there is one.
pub async fn come(client: Result<Client, Failure>, target: String) -> Answer {
    match client {
        Ok(mut client) => ask(&mut client, &target).await,
        Err(failure) => Answer {
            response: Err(failure),
            took: Duration::ZERO,
        },
    }
}

pub async fn at_once(address: SocketAddr, target: &str, clients: usize) -> Vec<Answer> {
    let mut asking = JoinSet::new();
    let mut connected = Vec::new();
    for _ in 0..clients {
        connected.push(Client::try_connect(address).await);
    }
    for client in connected {
        asking.spawn(come(client, target.to_owned()));
    }
    asking.join_all().await
}

pub async fn again_and_again(
    address: SocketAddr,
    target: &str,
    clients: usize,
    span: Duration,
) -> Vec<Answer> {
    let until = Instant::now() + span;
    let mut asking = JoinSet::new();
    for _ in 0..clients {
        let target = target.to_owned();
        asking.spawn(async move {
            let mut answers = Vec::new();
            while Instant::now() < until {
                let client = Client::try_connect(address).await;
                answers.push(come(client, target.clone()).await);
                tokio::time::sleep(REST).await;
            }
            answers
        });
    }
    asking.join_all().await.into_iter().flatten().collect()
}

pub async fn after_a_leader(
    address: SocketAddr,
    origin: &Origin,
    target: &str,
    clients: usize,
) -> Vec<Answer> {
    let Ok(mut leader) = Client::try_connect(address).await else {
        return at_once(address, target, clients).await;
    };
    let sent = leader.send(request("GET", target, &[])).await;
    if sent.is_ok() {
        origin.wait_for_requests(target, 1).await;
    }
    let crowd = at_once(address, target, clients);
    // The other clients are waiting by then, and the response has not arrived.
    let leaving = async {
        tokio::time::sleep(ORIGIN).await;
        leader.reset();
    };
    tokio::join!(crowd, leaving).0
}

/// Lets the origin answer the leader when all followers have asked, which arrive evenly over `ARRIVAL`; returns the
/// followers' answers, with their times from that moment.
pub async fn behind_a_leader(
    address: SocketAddr,
    origin: &Origin,
    target: &str,
    followers: usize,
) -> Vec<Answer> {
    let gate = Gate::new();
    origin.on(target, Scene::Followers(followers).reply().hold(&gate));
    let leader = Client::try_connect(address).await;
    let leader = tokio::spawn(come(leader, target.to_owned()));
    gate.wait_reached(1).await;
    let mut asking = JoinSet::new();
    let first = Instant::now();
    for number in 0..u32::try_from(followers).unwrap() {
        let (client, target) = (Client::try_connect(address).await, target.to_owned());
        let due = first + ARRIVAL / u32::try_from(followers).unwrap() * number;
        tokio::time::sleep_until(due.into()).await;
        asking.spawn(come(client, target));
    }
    // The last one waits by then.
    tokio::time::sleep(ORIGIN).await;
    let release = Instant::now();
    gate.open();
    let mut answers = asking.join_all().await;
    let _ = leader.await;
    for answer in &mut answers {
        if let Ok(response) = &answer.response {
            answer.took = response.at.saturating_duration_since(release);
        }
    }
    answers
}
