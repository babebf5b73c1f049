// SPDX-License-Identifier: Apache-2.0
//! Envoy as Sluice configures it, with one change: the effect of a change, or of a build of the module, on the cost
//! of a request.

mod access;
mod changes;
mod sites;

use crate::origins::Responder;
use crate::peers::Peer;
use serde_json::Value;
use sluice::settings::Runtime;
use sluice_core::key::secret::SECRET_VARIABLE;
use sluice_tests::http::http_date;
use sluice_tests::machine::tool::entry_point;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Size of a response.
pub const BYTES: usize = 10_000;
/// The variants that are measured unless `VARIANTS` names others.
const DEFAULT: &str = "edge bare direct";

/// A changed edge.
pub struct Variant {
    /// Names of changes and paths of modules, joined by `+`.
    pub name: String,
    changes: Vec<changes::Change>,
    /// Number of named sites of the edge, in place of the one without a name.
    sites: Option<usize>,
    module: Option<PathBuf>,
}

/// Whether `MISSES` asks for misses rather than hits.
pub fn misses() -> bool {
    std::env::var("MISSES").is_ok_and(|value| !matches!(value.as_str(), "" | "0"))
}

/// The variants that `VARIANTS` names. Ends the program if a change does not exist.
pub fn wanted() -> Vec<Variant> {
    let names = std::env::var("VARIANTS").unwrap_or_default();
    let names = if names.trim().is_empty() {
        DEFAULT
    } else {
        &names
    };
    let variants = names
        .split_whitespace()
        .map(Variant::parse)
        .collect::<Result<_, _>>();
    variants.unwrap_or_else(|error| {
        eprintln!("VARIANTS: {error}");
        std::process::exit(2);
    })
}

/// The runtime of a module of that name.
fn runtime_of(file: &Path) -> Option<Runtime> {
    match file.extension()?.to_str()? {
        "wasm" => Some(Runtime::Wasm),
        "so" => Some(Runtime::Native),
        _ => None,
    }
}

/// An origin with an object of [`BYTES`] under every path, with few headers.
pub fn origin() -> Responder {
    Responder::start(|_| {
        let date = http_date(SystemTime::now());
        let head = format!(
            "HTTP/1.1 200 OK\r\nserver: BaseHTTP/0.6\r\ndate: {date}\r\ncontent-type: text/plain\r\n\
             cache-control: max-age=3600\r\netag: \"1\"\r\ncontent-length: {BYTES}\r\n\r\n"
        );
        [head.as_bytes(), &[0; BYTES]].concat()
    })
}

impl Variant {
    fn parse(name: &str) -> Result<Self, String> {
        let (modules, names): (Vec<_>, Vec<_>) = name
            .split('+')
            .partition(|part| runtime_of(Path::new(part)).is_some());
        let (sites, names): (Vec<_>, Vec<_>) = names
            .into_iter()
            .partition(|name| sites::number(name).is_some());
        let change = |name: &str| {
            changes::find(name).ok_or_else(|| {
                let known = changes::names().join(", ");
                format!(
                    "there is no change {name:?}; there are {known}, sites-NUMBER, and paths of modules, .wasm and .so"
                )
            })
        };
        let module = modules.first().map(std::path::absolute).transpose();
        Ok(Self {
            name: name.to_owned(),
            changes: names.into_iter().map(change).collect::<Result<_, _>>()?,
            sites: sites.first().and_then(|name| sites::number(name)),
            module: module.map_err(|error| format!("{name}: {error}"))?,
        })
    }

    /// Starts the variant in front of `origin` with this many workers. `runner` may return a program with options,
    /// such as valgrind, for a folder; it then runs Envoy.
    pub async fn start(
        &self,
        origin: &Responder,
        workers: usize,
        runner: impl Fn(&Path) -> Option<Command>,
    ) -> Peer {
        let envoy = sluice_tests::machine::tool::envoy();
        let command = |folder: &Path, address: SocketAddr, _second: SocketAddr| {
            let config = folder.join("envoy.json");
            let document = self.config(folder, origin, address);
            std::fs::write(&config, document.to_string()).unwrap();
            let mut command = match runner(folder) {
                Some(mut runner) => {
                    runner.arg(&envoy);
                    runner
                }
                None => Command::new(&envoy),
            };
            command.env(SECRET_VARIABLE, access::SECRET);
            command.args(["--disable-hot-restart", "--log-level", "error"]);
            command.args(["--concurrency", &workers.to_string(), "-c"]);
            command.arg(config);
            command
        };
        Peer::start("variant", command).await
    }

    /// The target of a request for this URL, with a signature if the variant needs one.
    pub fn target(&self, target: &str, address: SocketAddr) -> String {
        let signed = [access::SIGNED, access::SIGNATURE_IGNORED];
        match self.name.split('+').any(|name| signed.contains(&name)) {
            true => access::sign(target, address),
            false => target.to_owned(),
        }
    }

    /// The runtime of its module, if it has one.
    fn runtime(&self) -> Option<Runtime> {
        self.module.as_deref().and_then(runtime_of)
    }

    /// The configuration that the entry point renders, changed.
    fn config(&self, folder: &Path, origin: &Responder, address: SocketAddr) -> Value {
        let cache = folder.join("cache");
        // As the entry point does when it starts.
        std::fs::create_dir_all(cache.join("entries")).unwrap();
        let mut render = Command::new(entry_point());
        render.arg("render").env("SLUICE_ACCESS_LOG", "off");
        let origin = format!("http://{}", origin.address);
        match self.sites {
            Some(number) => render.env(
                "SLUICE_SITES",
                sites::write(folder, number, &origin, address),
            ),
            None => render.env("SLUICE_ORIGIN", origin),
        };
        render.env("SLUICE_EDGE_PORT", address.port().to_string());
        render
            .env("SLUICE_STATE", folder)
            .env("SLUICE_CACHE_DIR", cache);
        if let Some((module, runtime)) = self.module.as_deref().zip(self.runtime()) {
            render.env(runtime.variable(), module);
            render.env("SLUICE_RUNTIME", runtime.name());
        }
        let rendered = render.output().unwrap();
        let said = String::from_utf8_lossy(&rendered.stderr);
        assert!(rendered.status.success(), "sluice render: {said}");
        let mut document: Value = serde_saphyr::from_slice(&rendered.stdout).unwrap();
        changes::first_start(&mut document);
        for change in &self.changes {
            change(&mut document);
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_changes_and_a_module() {
        let variant = Variant::parse("bare+some/build.wasm+sites-10+no-hop")
            .ok()
            .unwrap();
        assert_eq!(variant.runtime(), Some(Runtime::Wasm));
        assert_eq!(variant.changes.len(), 2);
        assert_eq!(variant.sites, Some(10));
        assert!(variant.module.unwrap().ends_with("some/build.wasm"));
    }

    #[test]
    fn an_unknown_change_is_named_with_those_that_there_are() {
        let error = Variant::parse("edge+bair").err().unwrap();
        assert!(
            error.contains("\"bair\"") && error.contains("no-hot-tier"),
            "{error}"
        );
    }
}
