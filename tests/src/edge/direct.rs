// SPDX-License-Identifier: Apache-2.0
//! Envoy with the configuration that the entry point renders, started by the test itself, so that the test can change
//! values without a setting.

use serde_json::{Value, json};
use sluice::cache;
use sluice::render;
use sluice::settings::Settings;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

/// Changes of the entry point's configuration.
#[derive(Clone, Debug, Default)]
pub struct Direct {
    /// Time without a byte after which a client's request ends.
    pub stream_idle: Option<Duration>,
    /// Time that the origin may be silent.
    pub origin_idle: Option<Duration>,
    /// Whether Envoy reads its listeners from a file that it watches.
    pub listener_file: bool,
    /// How often the hop retries to connect to the origin.
    pub retries: Option<u32>,
    /// A port on which any client reaches the listener for the filter's own requests.
    pub background_port: Option<u16>,
    /// Time that former listeners drain.
    pub drain: Option<Duration>,
    /// Whether workers pass connections to the worker that has fewest.
    pub exact_balance: bool,
    /// Bound on Envoy's heap, in bytes.
    pub heap_bytes: Option<u64>,
    /// Whether Envoy's allocator keeps all free memory.
    pub keeps_free_memory: bool,
    /// Another change of the configuration.
    pub change: Option<fn(&mut Value)>,
    /// Another level of the log.
    pub log_level: Option<&'static str>,
}

impl Direct {
    /// Makes the command that does the same as `entry_point`, with its files in `folder`.
    ///
    /// # Panics
    /// When the settings are wrong.
    #[must_use]
    pub fn command(&self, entry_point: &Command, folder: &Path) -> Command {
        let variables: HashMap<_, _> = entry_point
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value?.to_owned())))
            .collect();
        let mut settings = Settings::from_lookup(&|name| variables.get(name).cloned()).unwrap();
        if let Some(idle) = self.stream_idle {
            settings.stream_idle = idle;
        }
        if let Some(idle) = self.origin_idle {
            settings.origin_idle = idle;
        }
        if let Some(bytes) = self.heap_bytes {
            settings.heap_bytes = bytes;
        }
        let origin = settings.origin.clone().expect("an origin");
        let cache = settings.cache.dir.join(cache::ENTRIES);
        for made in [&cache, &settings.locations.state] {
            std::fs::create_dir_all(made).unwrap();
        }
        let text = render::render(&settings, &origin, &cache).unwrap();
        let mut config: Value = serde_saphyr::from_str(&text).unwrap();
        self.change(&mut config, folder);
        let path = folder.join("envoy.json");
        std::fs::write(&path, config.to_string()).unwrap();
        let mut command = Command::new(&settings.locations.envoy);
        command.arg("-c").arg(path);
        command.args(["--concurrency", &settings.concurrency.to_string()]);
        command.args(["--disable-hot-restart", "--file-flush-interval-msec", "100"]);
        if let Some(drain) = self.drain {
            command.args(["--drain-time-s", &drain.as_secs().to_string()]);
        }
        command.args([
            "--log-level",
            self.log_level.unwrap_or("warning"),
            "--component-log-level",
            "misc:error",
        ]);
        command.env_clear().envs(variables);
        command
    }

    /// Changes the configuration.
    fn change(&self, config: &mut Value, folder: &Path) {
        if let Some(retries) = self.retries {
            let routes = &mut manager(config, "origin")["route_config"];
            routes["virtual_hosts"][0]["retry_policy"]["num_retries"] = retries.into();
        }
        if let Some(port) = self.background_port {
            expose_background(config, port);
        }
        if self.keeps_free_memory {
            let kept = config.as_object_mut().expect("a configuration");
            kept.remove("memory_allocator_manager").expect("a bound");
        }
        if self.exact_balance {
            balance_exactly(config);
        }
        if let Some(change) = self.change {
            change(config);
        }
        if self.listener_file {
            let listeners = config["static_resources"]["listeners"].take();
            write_listeners(folder, &listeners);
            config["static_resources"]["listeners"] = json!([]);
            config["node"] = json!({"id": "sluice", "cluster": "sluice"});
            config["dynamic_resources"] = json!({"lds_config": {
                "resource_api_version": "V3",
                "path_config_source": {"path": listener_file(folder)},
            }});
        }
    }
}

fn listener<'a>(config: &'a mut Value, name: &str) -> &'a mut Value {
    let listeners = config["static_resources"]["listeners"].as_array_mut();
    let mut listeners = listeners.expect("listeners").iter_mut();
    listeners
        .find(|listener| listener["name"] == name)
        .unwrap_or_else(|| panic!("no listener {name}"))
}

/// Returns the HTTP connection manager of a listener.
fn manager<'a>(config: &'a mut Value, name: &str) -> &'a mut Value {
    &mut listener(config, name)["filter_chains"][0]["filters"][0]["typed_config"]
}

/// Sets `exact_balance` for all listeners with a socket.
fn balance_exactly(config: &mut Value) {
    let listeners = config["static_resources"]["listeners"].as_array_mut();
    let listeners = listeners.expect("listeners").iter_mut();
    for listener in listeners.filter(|listener| !listener["address"].is_null()) {
        listener["connection_balance_config"] = json!({"exact_balance": {}});
    }
}

/// Adds a listener like the one for the filter's own requests, with a socket.
fn expose_background(config: &mut Value, port: u16) {
    manager(config, "sluice_background")["codec_type"] = "AUTO".into();
    let mut exposed = listener(config, "sluice_background").clone();
    exposed["name"] = "exposed".into();
    exposed["address"] = json!({"socket_address": {"address": "127.0.0.1", "port_value": port}});
    let fields = exposed.as_object_mut().expect("a listener");
    fields.remove("internal_listener");
    let listeners = config["static_resources"]["listeners"].as_array_mut();
    listeners.expect("listeners").push(exposed);
}

fn listener_file(folder: &Path) -> PathBuf {
    folder.join("listeners.json")
}

/// Replaces the file atomically, as an operator must.
fn write_listeners(folder: &Path, listeners: &Value) {
    let typed = |listener: &Value| {
        let mut listener = listener.clone();
        listener["@type"] = LISTENER.into();
        listener
    };
    let listeners = listeners.as_array().expect("listeners");
    let resources: Vec<_> = listeners.iter().map(typed).collect();
    let part = folder.join("listeners.json.part");
    std::fs::write(&part, json!({"resources": resources}).to_string()).unwrap();
    std::fs::rename(&part, listener_file(folder)).unwrap();
}

/// Changes the policy in the listeners' file, which Envoy reads again.
///
/// # Panics
/// When the file does not exist.
pub fn update_policy(folder: &Path, change: &dyn Fn(&mut Value)) {
    let text = std::fs::read_to_string(listener_file(folder)).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    assert!(edit_policies(&mut document, change) > 0, "no policy");
    write_listeners(folder, &document["resources"]);
}

/// Changes the policies in a configuration of the filter: each is JSON in a `StringValue`.
fn edit_policies(within: &mut Value, change: &dyn Fn(&mut Value)) -> usize {
    let is_policy = within["@type"] == "type.googleapis.com/google.protobuf.StringValue";
    match within {
        Value::Object(fields) if is_policy => {
            let text = fields["value"].as_str().unwrap_or_default();
            let Ok(mut policy) = serde_json::from_str(text) else {
                return 0;
            };
            change(&mut policy);
            fields.insert("value".to_owned(), policy.to_string().into());
            1
        }
        Value::Object(fields) => {
            let parts = fields.values_mut();
            parts.map(|part| edit_policies(part, change)).sum()
        }
        Value::Array(parts) => {
            let parts = parts.iter_mut();
            parts.map(|part| edit_policies(part, change)).sum()
        }
        _ => 0,
    }
}
