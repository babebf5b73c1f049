// SPDX-License-Identifier: Apache-2.0
//! Peers as shared caches that keep to what the origin says, see `peers/conformance`. They are the unpacked Debian
//! packages in the folder `SLUICE_PEERS`, and nothing of the system's.

use crate::peers::Peer;
use crate::peers::peer::{fill, unprivileged};
use sluice_tests::machine::tool;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a cache is started.
pub struct Recipe {
    /// Its program, in the packages.
    program: &'static str,
    /// What makes it say its version.
    version: &'static str,
    /// The files of its configuration with their names.
    files: &'static [(&'static str, &'static str)],
    arguments: &'static [&'static str],
}

macro_rules! file {
    ($folder:literal, $name:literal) => {
        (
            $name,
            include_str!(concat!("../../peers/conformance/", $folder, $name)),
        )
    };
}

/// Apache httpd.
pub const APACHE: Recipe = Recipe {
    program: "usr/sbin/apache2",
    version: "-v",
    files: &[file!("", "apache.conf")],
    arguments: &["-d", "${FOLDER}", "-f", "apache.conf", "-D", "FOREGROUND"],
};

/// HAProxy.
pub const HAPROXY: Recipe = Recipe {
    program: "usr/sbin/haproxy",
    version: "-v",
    files: &[file!("", "haproxy.cfg")],
    arguments: &["-db", "-f", "${FOLDER}/haproxy.cfg"],
};

/// nginx.
pub const NGINX: Recipe = Recipe {
    program: "usr/sbin/nginx",
    version: "-v",
    files: &[file!("", "nginx.conf")],
    arguments: &["-e", "stderr", "-p", "${FOLDER}", "-c", "nginx.conf"],
};

/// Squid.
pub const SQUID: Recipe = Recipe {
    program: "usr/sbin/squid",
    version: "-v",
    files: &[file!("", "squid.conf")],
    arguments: &["-N", "-f", "${FOLDER}/squid.conf"],
};

/// Traffic Server.
pub const TRAFFIC_SERVER: Recipe = Recipe {
    program: "usr/bin/traffic_server",
    version: "--version",
    files: &[
        file!("trafficserver/", "ip_allow.yaml"),
        file!("trafficserver/", "records.config"),
        file!("trafficserver/", "remap.config"),
        file!("trafficserver/", "runroot.yaml"),
        file!("trafficserver/", "storage.config"),
    ],
    arguments: &["--run-root=${FOLDER}/runroot.yaml"],
};

/// Varnish, where only the origin says how long a response is fresh.
#[rustfmt::skip]
pub const VARNISH: Recipe = Recipe {
    program: "usr/sbin/varnishd",
    version: "-V",
    files: &[file!("", "varnish.vcl")],
    arguments: &[
        "-F", "-j", "none", "-n", "${FOLDER}/run", "-f", "${FOLDER}/varnish.vcl", "-a", "${ADDRESS}", "-s", "malloc,64m",
        "-p", "default_ttl=0", "-p", "default_grace=0", "-p", "default_keep=3600",
    ],
};

impl Recipe {
    /// Starts it before `origin`; nothing where the packages do not have it.
    pub async fn start(&self, origin: SocketAddr) -> Option<Peer> {
        let name = self.program()?;
        let command = |folder: &Path, address: SocketAddr, _: SocketAddr| {
            let values = [
                ("FOLDER", folder.display().to_string()),
                ("PACKAGES", packages().display().to_string()),
                ("ADDRESS", address.to_string()),
                ("PORT", address.port().to_string()),
                ("ORIGIN", origin.to_string()),
                ("ORIGIN_HOST", origin.ip().to_string()),
                ("ORIGIN_PORT", origin.port().to_string()),
            ];
            for name in ["cache", "run", "log"] {
                std::fs::create_dir(folder.join(name)).unwrap();
            }
            for (name, template) in self.files {
                std::fs::write(folder.join(name), fill(template, &values)).unwrap();
            }
            let mut command = self.command();
            let arguments = self.arguments.iter();
            command.args(arguments.map(|argument| fill(argument, &values)));
            unprivileged(&mut command, folder);
            command
        };
        Some(Peer::start(name, command).await)
    }

    /// What makes it say its version.
    pub fn version(&self) -> Command {
        let mut command = self.command();
        command.arg(self.version);
        command
    }

    /// The name of its program, where the packages have it.
    fn program(&self) -> Option<&'static str> {
        let installed = packages().join(self.program).is_file();
        let (_, name) = self.program.rsplit_once('/')?;
        installed.then_some(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(packages().join(self.program));
        command.env("LD_LIBRARY_PATH", libraries());
        command
    }
}

fn packages() -> PathBuf {
    tool::folder("SLUICE_PEERS")
}

/// The folders of the packages in which there may be libraries: `lib` and `usr/lib`, and two levels below.
fn libraries() -> OsString {
    let below = |folder: &PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir());
        folders.collect::<Vec<_>>()
    };
    let tops = ["usr/lib", "lib"].map(|name| packages().join(name));
    let first: Vec<_> = tops.iter().flat_map(below).collect();
    let second: Vec<_> = first.iter().flat_map(below).collect();
    std::env::join_paths(first.iter().chain(&second)).unwrap()
}
