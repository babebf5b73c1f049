// SPDX-License-Identifier: Apache-2.0
//! The edge, started, reloaded and stopped according to its unit: by the unit's commands, with its variables, in its
//! folder. No systemd runs here, so the sandbox is only checked by `systemd-analyze` (`envoy/tests/systemd.rs`).

use sluice::settings::Runtime;
use sluice_tests::client::{get, is_healthy};
use sluice_tests::eventually;
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::machine::process::Process;
use sluice_tests::machine::tool::{entry_point, envoy, module, module_of, repository};
use sluice_tests::origin::{Origin, Reply};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LASTING: &str = "{origin: {kind: http}, cache: {ttl: {\"200\": 1h, default: 1s}}}";

/// The unit, with all its paths in a folder of the test.
struct Unit {
    root: TempDir,
    text: String,
}

impl Unit {
    /// Installs the edge as the unit expects it, with `settings` after the lines of the example settings.
    fn installed(settings: &str) -> Self {
        let root = TempDir::with_prefix("sluice-unit-").unwrap();
        let folder = |name: &str| {
            let folder = root.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        let (opt, etc) = (folder("opt"), folder("etc"));
        let _made_by_systemd = (folder("state"), folder("cache"));
        // The program is not a link, because the edge looks for the modules in the folder of its program.
        fs::copy(entry_point(), opt.join("sluice")).unwrap();
        fs::copy(module(), opt.join("sluice.wasm")).unwrap();
        fs::copy(module_of(Runtime::Native), opt.join("sluice.so")).unwrap();
        symlink(envoy(), opt.join("envoy")).unwrap();
        let source = repository().join("envoy/systemd");
        let example = fs::read_to_string(source.join("sluice.env")).unwrap();
        fs::write(etc.join("sluice.env"), example + settings).unwrap();
        let mut text = fs::read_to_string(source.join("sluice.service")).unwrap();
        for (place, folder) in [
            ("/opt/sluice", "opt"),
            ("/etc/sluice", "etc"),
            ("/var/lib/sluice", "state"),
            ("/var/cache/sluice", "cache"),
        ] {
            text = text.replace(place, root.path().join(folder).to_str().unwrap());
        }
        Self { root, text }
    }

    /// Values of a key, in their order.
    fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        let values = self.text.lines().filter_map(|line| line.split_once('='));
        values.filter_map(move |(name, value)| (name == key).then_some(value))
    }

    fn value(&self, key: &str) -> &str {
        self.values(key)
            .next()
            .unwrap_or_else(|| panic!("no {key}"))
    }

    /// One of the unit's commands, with its variables, its folder and its limit on open files, and no other
    /// variables.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("prlimit");
        // The limit is lower where this machine allows less.
        let files = self
            .value("LimitNOFILE")
            .parse::<u64>()
            .unwrap()
            .min(hard_limit());
        command
            .arg(format!("--nofile={files}"))
            .args(line.split(' '));
        command.env_clear().env("PATH", "/usr/bin:/bin");
        for assignment in self.values("Environment").flat_map(|line| line.split(' ')) {
            command.envs(assignment.split_once('='));
        }
        let settings = fs::read_to_string(self.value("EnvironmentFile")).unwrap();
        let settings = settings.lines().filter(|line| !line.starts_with('#'));
        command.envs(settings.filter_map(|line| line.split_once('=')));
        command.current_dir(self.value("WorkingDirectory"));
        command
    }

    /// Does the work of `systemctl reload`: runs the commands in order until one fails, and then sends SIGHUP, as
    /// the type says. Returns whether all commands have succeeded.
    fn reload(&self, edge: &Process) -> bool {
        assert_eq!(self.value("Type"), "notify-reload");
        let mut lines = self.values("ExecReload");
        let succeeded = lines.all(|line| self.command(line).status().unwrap().success());
        if succeeded {
            edge.signal(libc::SIGHUP);
        }
        succeeded
    }

    fn etc(&self, name: &str) -> PathBuf {
        Path::new(self.value("WorkingDirectory")).join(name)
    }
}

fn hard_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call writes only into `limit`.
    let read = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    assert_eq!(read, 0);
    limit.rlim_max
}

#[tokio::test]
async fn the_edge_serves_reloads_and_stops_as_its_unit_says() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1_000));
    let port = free_port();
    let settings = format!(
        "SLUICE_ORIGIN={}\nSLUICE_BIND=127.0.0.1\nSLUICE_EDGE_PORT={port}\nSLUICE_METRICS_PORT={}\n",
        origin.url(),
        free_port()
    );
    let unit =
        Unit::installed(&(settings + "SLUICE_CACHE_MAX_BYTES=64MiB\nSLUICE_POLICY=policy.yaml\n"));
    fs::write(unit.etc("policy.yaml"), LASTING).unwrap();
    let log = unit.root.path().join("log");
    let mut edge = Process::start(unit.command(unit.value("ExecStart")), &log).unwrap();
    eventually("a healthy edge", async || {
        is_healthy(loopback(port), "/healthz").await
    })
    .await;
    let _ = get(loopback(port), "/a").await.stamp("/a");

    fs::write(unit.etc("policy.yaml"), LASTING.replace("1h", "2h")).unwrap();
    assert!(unit.reload(&edge));
    eventually("a reload", async || edge.log().contains("reloaded:")).await;
    fs::write(unit.etc("policy.yaml"), "{origin: {kind: nothing}}").unwrap();
    assert!(!unit.reload(&edge));
    eventually("a hit", async || get(loopback(port), "/a").await.is_hit()).await;

    assert_eq!(unit.value("KillMode"), "mixed", "SIGTERM to the edge alone");
    let patience = unit.value("TimeoutStopSec").parse().unwrap();
    let status = edge.stop(Duration::from_secs(patience));
    let code = status.expect("an end in time").code();
    assert_eq!(code, Some(0), "{}", edge.log());
    assert!(unit.root.path().join("cache/entries").is_dir());
}
