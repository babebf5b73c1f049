// SPDX-License-Identifier: Apache-2.0
//! Peers as shared caches that obey the origin's headers, see `peers/conformance`.

use crate::peers::packages::RELEASE;
use crate::peers::recipe::{File, Recipe};

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
    release: RELEASE,
    program: "apache2",
    version: "-v",
    files: &[file!("", "apache.conf")],
    arguments: &["-d", "${FOLDER}", "-f", "apache.conf", "-D", "FOREGROUND"],
};

/// HAProxy.
pub const HAPROXY: Recipe = Recipe {
    release: RELEASE,
    program: "haproxy",
    version: "-v",
    files: &[file!("", "haproxy.cfg")],
    arguments: &["-db", "-f", "${FOLDER}/haproxy.cfg"],
};

/// nginx.
pub const NGINX: Recipe = Recipe {
    release: RELEASE,
    program: "nginx",
    version: "-v",
    files: &[file!("", "nginx.conf")],
    arguments: &["-e", "stderr", "-p", "${FOLDER}", "-c", "nginx.conf"],
};

/// Squid.
pub const SQUID: Recipe = Recipe {
    release: RELEASE,
    program: "squid-gnutls",
    version: "-v",
    files: &[file!("", "squid.conf")],
    arguments: &["-N", "-f", "${FOLDER}/squid.conf"],
};

/// Traffic Server's file of allowed clients.
pub const IP_ALLOW: File = file!("trafficserver/", "ip_allow.yaml");
/// Traffic Server's file of the origin.
pub const REMAP: File = file!("trafficserver/", "remap.config");
/// Traffic Server's file of folders.
pub const RUNROOT: File = file!("trafficserver/", "runroot.yaml");

/// Traffic Server.
pub const TRAFFIC_SERVER: Recipe = Recipe {
    release: "bookworm",
    program: "traffic_server",
    version: "--version",
    files: &[
        file!("trafficserver/", "records.config"),
        file!("trafficserver/", "storage.config"),
        IP_ALLOW,
        REMAP,
        RUNROOT,
    ],
    arguments: &["--run-root=${FOLDER}/runroot.yaml"],
};

/// Varnish, where only the origin decides how long a response is fresh.
#[rustfmt::skip]
pub const VARNISH: Recipe = Recipe {
    release: RELEASE,
    program: "varnishd",
    version: "-V",
    files: &[file!("", "varnish.vcl")],
    arguments: &[
        "-F", "-j", "none", "-n", "${FOLDER}/run", "-f", "${FOLDER}/varnish.vcl", "-a", "${ADDRESS}", "-s", "malloc,64m",
        "-p", "default_ttl=0", "-p", "default_grace=0", "-p", "default_keep=3600",
    ],
};
