// SPDX-License-Identifier: Apache-2.0
//! A network for one test: loopback with the addresses that the test names, without a route out of it.

use crate::PATIENCE;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Set in the process that runs in the network.
const INSIDE: &str = "SLUICE_NETWORK";

/// Runs a command in a separate network namespace. The user namespace, which lets any user create one, clears the
/// signal that ends the process with the test, so `setpriv` sets the signal again.
const ENTER: &str = r#"
set -eu
ip link set lo up
for address in $1; do
    ip address add "$address" dev lo
done
shift
exec setpriv --pdeathsig KILL -- "$@"
"#;

/// Whether this process is in a network with these addresses beside 127.0.0.1 and `::1`. If it is not, this test has
/// run in another process that is, and the caller has to return.
///
/// # Panics
/// When the test fails there, or when the network cannot be created.
#[must_use]
pub fn is_own(addresses: &[&str]) -> bool {
    let namespaces = ["--map-root-user", "--net"];
    is_in(&namespaces, addresses, PATIENCE.saturating_mul(2), None)
}

/// Like [`is_own`], with all users of the machine, which needs root, and for a test that takes at most `patience`. All
/// processes and temporary files end with the test.
///
/// # Panics
/// When the test fails there, or when the network cannot be created.
#[must_use]
pub fn is_own_of_root(addresses: &[&str], patience: Duration) -> bool {
    let namespaces = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"];
    // NB: a process of another process namespace seems to have ended, so its files must not be found there.
    let temporary = TempDir::with_prefix("sluice-network-").unwrap();
    is_in(&namespaces, addresses, patience, Some(temporary.path()))
}

/// Whether this process is in these namespaces. If it is not, the test of this thread has run in a process that is,
/// with this folder for temporary files.
fn is_in(
    namespaces: &[&str],
    addresses: &[&str],
    patience: Duration,
    temporary: Option<&Path>,
) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let thread = std::thread::current();
    let mut test = Command::new("unshare");
    test.args(namespaces)
        .arg("timeout")
        .arg(patience.as_secs().to_string())
        .args(["sh", "-c", ENTER, "sh"])
        .arg(addresses.join(" "))
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--include-ignored", "--exact"])
        .arg(thread.name().unwrap())
        .envs(temporary.map(|folder| ("TMPDIR", folder)))
        .env(INSIDE, "1");
    let output = test.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // With --nocapture the caller's output has the measurements of the test.
    print!("{said}");
    false
}
