// SPDX-License-Identifier: Apache-2.0
//! The public conformance suite for HTTP caches, for Sluice in several variants and for its peers: the tables of
//! `bench/CONFORMANCE.md`.

mod cache;
mod page;

use cache::Cache;
use sluice_tests::conformance::{Outcomes, Suite};
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

/// Number of caches that are tested at one time, because a test mostly waits.
const AT_ONCE: usize = 4;

/// Results of the tests of each cache.
type Results = BTreeMap<Cache, Outcomes>;

/// Tests the caches that `CACHES` names, or all, and prints the tables. False if a cache has failed.
///
/// # Errors
/// When a name is unknown.
pub async fn run() -> Result<bool, String> {
    let caches = Cache::named(&std::env::var("CACHES").unwrap_or_default())?;
    let suite = Rc::new(Suite::start().await);
    let permits = Rc::new(Semaphore::new(AT_ONCE));
    let local = LocalSet::new();
    let mut running = JoinSet::new();
    for cache in caches {
        let (suite, permits) = (Rc::clone(&suite), Rc::clone(&permits));
        let ask = async move {
            let _permit = permits.acquire().await;
            eprintln!("{}: asking", cache.title());
            (cache, cache.outcomes(&suite).await)
        };
        running.spawn_local_on(ask, &local);
    }
    let (results, all_ended) = local.run_until(collected(running)).await;
    print!("{}", page::of(&results, suite.cut()));
    eprintln!("{}", page::news(&results, suite.cut()));
    Ok(all_ended)
}

async fn collected(mut running: JoinSet<(Cache, Option<Outcomes>)>) -> (Results, bool) {
    let (mut results, mut all_ended) = (Results::new(), true);
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((cache, Some(outcomes))) => {
                results.insert(cache, outcomes);
            }
            // Its start has printed that it is not installed.
            Ok((_, None)) => {}
            // The panic has printed the reason.
            Err(_) => all_ended = false,
        }
    }
    (results, all_ended)
}
