// SPDX-License-Identifier: Apache-2.0
//! h2spec, which tests a server against RFC 7540 and RFC 7541.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

/// Names of h2spec's tests: `SECTION: DESCRIPTION`.
pub type Names = BTreeSet<String>;

/// The binary: `SLUICE_H2SPEC`.
///
/// # Panics
/// When it is not set.
fn binary() -> PathBuf {
    let set = std::env::var_os("SLUICE_H2SPEC");
    set.expect("SLUICE_H2SPEC: h2spec, which `make test` builds")
        .into()
}

/// The tests that fail for the server at `address`, in these `sections` such as `http2/8.1`, or in all if there are
/// none. A test that fails is run once more, because a busy machine may be late.
///
/// # Panics
/// When h2spec does not run.
#[must_use]
pub fn failing(address: SocketAddr, tls: bool, sections: &[&str]) -> Names {
    let first = failing_once(address, tls, sections);
    if first.is_empty() {
        return first;
    }
    let again: BTreeSet<_> = first
        .iter()
        .filter_map(|name| name.split_once(": "))
        .map(|(section, _)| section)
        .collect();
    let again: Vec<_> = again.into_iter().collect();
    let second = failing_once(address, tls, &again);
    first.intersection(&second).cloned().collect()
}

fn failing_once(address: SocketAddr, tls: bool, sections: &[&str]) -> Names {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.xml");
    let mut command = Command::new(binary());
    command.args(["--timeout", "2", "--host", &address.ip().to_string()]);
    command.args(["--port", &address.port().to_string()]);
    command.arg("--junit-report").arg(&report).args(sections);
    if tls {
        command.args(["--tls", "--insecure"]);
    }
    let output = command.output().unwrap();
    let report = std::fs::read_to_string(&report);
    let report = report.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    failed(&report)
}

/// The names of the test cases that a report says have failed.
fn failed(report: &str) -> Names {
    let cases = report.split("<testcase ").skip(1);
    let failed = cases.filter(|case| {
        let own = case.split("</testcase>").next().unwrap_or_default();
        own.contains("<failure") || own.contains("<error")
    });
    let name = |case: &str| {
        let of = |attribute: &str| {
            let rest = case.split_once(&format!("{attribute}=\""))?.1;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        Some(format!("{}: {}", of("package")?, of("classname")?))
    };
    failed.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_cases_are_named_by_their_section() {
        let report = r#"<testsuite name="8" package="http2/8">
            <testcase package="http2/8" classname="Sends a" time="1"></testcase>
            <testcase package="http2/8" classname="Sends b" time="1"><failure>x</failure></testcase>
            <testcase package="http2/9" classname="Sends c" time="1"><error>x</error></testcase>"#;
        let names = ["http2/8: Sends b", "http2/9: Sends c"].map(str::to_owned);
        assert_eq!(failed(report), BTreeSet::from(names));
    }
}
