// SPDX-License-Identifier: Apache-2.0
//! The client of the few HTTP requests that the entry point makes, all on loopback or to the edge itself.

use std::time::Duration;

use ureq::Agent;

/// A client with short timeouts and without a proxy, to which every status is an answer and not an error.
pub fn client() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .timeout_global(Some(Duration::from_secs(10)))
        .timeout_connect(Some(Duration::from_secs(1)));
    Agent::new_with_config(config.build())
}
