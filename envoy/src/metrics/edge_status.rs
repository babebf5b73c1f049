// SPDX-License-Identifier: Apache-2.0
//! The build, the configuration and the last reload of the edge.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sluice_core::metrics::Family;

use super::exposition::{Exposition, epoch_millis, epoch_seconds};

const BUILD_INFO: Family = Family::gauge(
    "sluice_build_info",
    "Always 1; the labels are the version of the edge and the runtime of its filter.",
);
const CONFIG_INFO: Family = Family::gauge(
    "sluice_config_info",
    "Always 1; the label is a hash of the policies and the sites. Edges with the same ones have the same hash.",
);
const RELOAD_SUCCESSFUL: Family = Family::gauge(
    "sluice_config_last_reload_successful",
    "1 if the last reload was accepted, or if there was none; 0 if it was refused and nothing has changed.",
);
const RELOAD_TIME: Family = Family::gauge(
    "sluice_config_last_reload_success_timestamp_seconds",
    "The time of the last start or accepted reload, in seconds since the epoch.",
);

/// The families of this module.
pub const FAMILIES: [Family; 4] = [BUILD_INFO, CONFIG_INFO, RELOAD_SUCCESSFUL, RELOAD_TIME];

/// The state of the edge's configuration. Clones share the state.
#[derive(Clone, Debug)]
pub struct EdgeStatus(Arc<Mutex<State>>);

#[derive(Clone, Debug)]
struct State {
    runtime: &'static str,
    configuration: u64,
    last_succeeded: bool,
    loaded: SystemTime,
    last_reload: Option<(SystemTime, String)>,
}

/// The state of the edge's configuration, for the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeState {
    /// The version of the edge.
    pub version: String,
    /// The runtime of the filter.
    pub runtime: String,
    /// A hash of the policies and the sites, in hexadecimal.
    pub configuration: String,
    /// The time of the last start or accepted reload, in milliseconds since the epoch.
    pub loaded_at_ms: u64,
    /// The last reload; `None`: there was none.
    pub last_reload: Option<LastReload>,
}

/// A reload of the edge's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastReload {
    /// The time, in milliseconds since the epoch.
    pub at_ms: u64,
    /// Whether the reload was accepted.
    pub accepted: bool,
    /// The changed parts, or the reason of the refusal.
    pub result: String,
}

impl EdgeStatus {
    /// An edge that starts now with a configuration of this hash.
    pub fn new(runtime: &'static str, configuration: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            runtime,
            configuration,
            last_succeeded: true,
            loaded: SystemTime::now(),
            last_reload: None,
        })))
    }

    /// Notes a reload with its result for the operator. `accepted` is the hash of the new configuration; `None`: the
    /// reload was refused.
    pub fn note_reload(&self, accepted: Option<u64>, result: &str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now();
        state.last_succeeded = accepted.is_some();
        state.last_reload = Some((now, result.to_owned()));
        if let Some(configuration) = accepted {
            state.configuration = configuration;
            state.loaded = now;
        }
    }

    /// The state for the operator.
    pub fn report(&self) -> EdgeState {
        let state = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let accepted = state.last_succeeded;
        EdgeState {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            runtime: state.runtime.to_owned(),
            configuration: format!("{:016x}", state.configuration),
            loaded_at_ms: epoch_millis(state.loaded),
            last_reload: state.last_reload.map(|(at, result)| LastReload {
                at_ms: epoch_millis(at),
                accepted,
                result,
            }),
        }
    }

    /// Adds the metrics.
    pub(super) fn expose(&self, exposition: &mut Exposition) {
        let state = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let version = ("version", env!("CARGO_PKG_VERSION"));
        let runtime = ("runtime", state.runtime);
        exposition.add(BUILD_INFO, &[version, runtime], 1);
        let hash = format!("{:016x}", state.configuration);
        exposition.add(CONFIG_INFO, &[("hash", &hash)], 1);
        let succeeded = u8::from(state.last_succeeded);
        exposition.add(RELOAD_SUCCESSFUL, &[], succeeded);
        exposition.add(RELOAD_TIME, &[], epoch_seconds(state.loaded));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposed(status: &EdgeStatus) -> String {
        let mut exposition = Exposition::default();
        status.expose(&mut exposition);
        exposition.to_string()
    }

    #[test]
    fn a_refused_reload_leaves_the_hash_and_the_time() {
        let status = EdgeStatus::new("wasm", 0xab);
        let start = exposed(&status);
        assert!(
            start.contains("sluice_config_info{hash=\"00000000000000ab\"} 1\n"),
            "{start}"
        );
        assert!(
            start.contains("sluice_config_last_reload_successful 1\n"),
            "{start}"
        );
        status.note_reload(None, "reload refused: a reason");
        let refused = start.replace("reload_successful 1\n", "reload_successful 0\n");
        assert_eq!(exposed(&status), refused);
        let reload = status.report().last_reload.unwrap();
        assert_eq!(
            (reload.accepted, reload.result.as_str()),
            (false, "reload refused: a reason")
        );
        status.note_reload(Some(0xcd), "reloaded");
        assert!(exposed(&status).contains("hash=\"00000000000000cd\""));
    }
}
