// SPDX-License-Identifier: Apache-2.0
//! The few HTTP requests that the entry point makes, all on loopback or to the edge itself.

use std::time::Duration;

use ureq::Agent;
use ureq::http::Uri;

/// A client that gives up soon and takes every status for an answer.
pub fn client() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .timeout_global(Some(Duration::from_secs(10)))
        .timeout_connect(Some(Duration::from_secs(1)));
    Agent::new_with_config(config.build())
}

/// The status that `uri` answers with; `None` where nobody answers.
pub fn status<T>(client: &Agent, uri: T) -> Option<u16>
where
    Uri: TryFrom<T>,
    <Uri as TryFrom<T>>::Error: Into<ureq::http::Error>,
{
    client
        .get(uri)
        .call()
        .ok()
        .map(|response| response.status().as_u16())
}
