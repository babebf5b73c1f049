// SPDX-License-Identifier: Apache-2.0
//! Misspelled names of settings. A setting whose name is misspelled would silently have its default.

use std::ffi::OsString;

use super::{Environment, docs, service_link};
use crate::settings::SettingProblem;

/// Variables with the prefix of settings that other parts of the project read: the image, the Makefile, tests and
/// benchmarks.
pub const OTHER_NAMES: [&str; 29] = [
    "SLUICE_BENCH_ALONE",
    "SLUICE_BENCH_PEERS",
    "SLUICE_BIN",
    "SLUICE_CACHE_SECRET",
    "SLUICE_CHROMIUM",
    "SLUICE_COMMIT",
    "SLUICE_CONFORMANCE",
    "SLUICE_CRANE",
    "SLUICE_DEFINITIONS",
    "SLUICE_ENVOY_GATEWAY",
    "SLUICE_ETCD",
    "SLUICE_FORMER",
    "SLUICE_H2SPEC",
    "SLUICE_HELM",
    "SLUICE_HELM_FORMER",
    "SLUICE_IMAGE",
    "SLUICE_ISTIO",
    "SLUICE_ISTIO_FORMER",
    "SLUICE_K6",
    "SLUICE_KUBERNETES",
    "SLUICE_KUSTOMIZE",
    "SLUICE_NETWORK",
    "SLUICE_NODE",
    "SLUICE_PROMETHEUS",
    "SLUICE_QEMU",
    "SLUICE_RELEASE",
    "SLUICE_TRAP_NATIVE",
    "SLUICE_TRAP_WASM",
    "SLUICE_VERSITYGW",
];

impl Environment<'_> {
    /// Refuses variables with the prefix of settings that are not settings, and notes other variables whose names are
    /// almost short names of settings. No message shows a value, because the variable may be a secret.
    pub fn check_names(&mut self, variables: impl Iterator<Item = (OsString, OsString)>) {
        let names = variables.filter_map(|(name, value)| {
            let (name, value) = (name.into_string().ok()?, value.to_string_lossy());
            (!value.is_empty() && !service_link::is_link(&name, &value)).then_some(name)
        });
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        for name in names {
            if is_unknown(&name) {
                let nearest = nearest(&name);
                self.report(SettingProblem::Names(format!(
                    "{name}: not a setting; is {nearest} meant? (`sluice settings` lists all)"
                )));
            } else if let Some(meant) = almost(&name) {
                self.notice(format!("{name}: not a setting; is {meant} meant?"));
            }
        }
    }
}

/// All variables of the settings.
fn known() -> impl Iterator<Item = String> {
    docs::names().flat_map(docs::variables)
}

/// Whether a variable has the prefix of settings, but is not known.
fn is_unknown(name: &str) -> bool {
    name.starts_with(docs::PREFIX)
        && !OTHER_NAMES.contains(&name)
        && !known().any(|known| known == name)
}

/// The variable of a setting that is the most similar to `name`. One with all words of `name` is the most similar, as
/// `SLUICE_EDGE_PORT` is for `SLUICE_PORT`.
fn nearest(name: &str) -> String {
    let name = bare(name);
    // Names of other programs have no prefix.
    let named = known().filter(|known| known.starts_with(docs::PREFIX) || known.contains('_'));
    let nearest = named.min_by_key(|known| {
        let known = bare(known);
        let lacks_words = !name
            .split('_')
            .all(|word| known.split('_').any(|its| its == word));
        (lacks_words, strsim::osa_distance(name, known))
    });
    nearest.unwrap_or_default()
}

/// A variable's name without the prefix of settings.
fn bare(name: &str) -> &str {
    name.strip_prefix(docs::PREFIX).unwrap_or(name)
}

/// The setting whose short name differs from `name` by a letter or two; `None`: no name is that similar. Names of
/// other programs are often similar to a short name of few letters, so they must be more similar.
fn almost(name: &str) -> Option<String> {
    if known().any(|known| known == name) {
        return None;
    }
    let is_similar = |short: &str| {
        let most = match short.len() {
            0..6 => 0,
            6..12 => 1,
            _ => 2,
        };
        strsim::osa_distance(name, short) <= most
    };
    let mut settings = docs::names_with_short_name();
    let meant = settings.find(|setting| docs::short_name(setting).is_some_and(is_similar));
    meant.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems and the notices about the names of these variables.
    fn check(names: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let nothing = |_: &str| None;
        let mut env = Environment::new(&nothing);
        let variables = names
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        env.check_names(variables);
        let problems = env.problems.iter().map(ToString::to_string);
        (problems.collect(), env.notices)
    }

    #[test]
    fn an_unknown_name_with_the_prefix_is_refused_with_the_nearest_setting() {
        for (name, meant) in [
            ("SLUICE_CACHE_MAX_BYTE", "SLUICE_CACHE_MAX_BYTES"),
            ("SLUICE_ORIGN", "SLUICE_ORIGIN"),
            ("SLUICE_PORT", "SLUICE_EDGE_PORT"),
            ("SLUICE_PURGE_TOKEN_FIL", "SLUICE_PURGE_TOKEN_FILE"),
            ("SLUICE_AWS_REGION", "AWS_REGION"),
            ("SLUICE_SSL_CERT_FILE", "SSL_CERT_FILE"),
            ("SLUICE_origin", "SLUICE_ORIGIN"),
        ] {
            let (problems, notices) = check(&[(name, "hush")]);
            let expected = format!("{name}: not a setting; is {meant} meant? ");
            assert!(problems[0].starts_with(&expected), "{problems:?}");
            assert!(!problems[0].contains("hush") && notices.is_empty());
        }
    }

    #[test]
    fn a_name_that_is_almost_a_short_name_is_noticed() {
        for (name, meant) in [
            ("CACHE_MAX_BYTE", "SLUICE_CACHE_MAX_BYTES"),
            ("CAHCE_DIR", "SLUICE_CACHE_DIR"),
            ("ORIGN", "SLUICE_ORIGIN"),
            ("PURGE_TOKENS", "SLUICE_PURGE_TOKEN"),
        ] {
            let expected = format!("{name}: not a setting; is {meant} meant?");
            let (problems, notices) = check(&[(name, "hush")]);
            assert_eq!((problems.len(), notices), (0, vec![expected]));
        }
    }

    #[test]
    fn no_name_of_a_system_is_noticed() {
        let names = [
            "PATH",
            "HOME",
            "HOSTNAME",
            "TERM",
            "SHLVL",
            "PWD",
            "LANG",
            "USER",
            "SHELL",
            "TMPDIR",
            "TZ",
            "PORT",
            "HOST",
            "PS1",
            "LD_LIBRARY_PATH",
            "SSL_CERT_DIR",
            "HTTP_PROXY",
            "NO_PROXY",
            "INVOCATION_ID",
            "JOURNAL_STREAM",
            "STATE_DIRECTORY",
            "CACHE_DIRECTORY",
            "RUNTIME_DIRECTORY",
            "NOTIFY_SOCKET",
            "XDG_RUNTIME_DIR",
            "XDG_CACHE_HOME",
            "CI",
            "AWS_ENDPOINT_URL_SNS",
            "AWS_EC2_METADATA_DISABLED",
            "AWS_ROLE_ARN",
            "NODE_PORT",
            "OTEL_LOG_LEVEL",
            "POD_NAME",
            "POD_IP",
            "NODE_NAME",
            "DEBUG",
            "NAMESPACE",
        ];
        assert_eq!(check(&names.map(|name| (name, "x"))), (vec![], vec![]));
    }

    #[test]
    fn no_variable_of_a_service_named_like_the_edge_is_refused() {
        let links = [
            ("SLUICE_SERVICE_HOST", "10.0.0.1"),
            ("SLUICE_SERVICE_PORT", "80"),
            ("SLUICE_SERVICE_PORT_HTTP", "80"),
            ("SLUICE_PORT", "tcp://10.0.0.1:80"),
            ("SLUICE_PORT_80_TCP", "tcp://10.0.0.1:80"),
            ("SLUICE_PORT_80_TCP_PROTO", "tcp"),
            ("SLUICE_PORT_80_TCP_PORT", "80"),
            ("SLUICE_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("SLUICE_PORT_53_UDP_ADDR", "fd00::1"),
            ("SLUICE_EDGE_SERVICE_HOST", "10.0.0.1"),
            ("SLUICE_EDGE_SERVICE_PORT_METRICS_HTTP", "9901"),
            ("SLUICE_EDGE_PORT", "tcp://10.0.0.1:80"),
            ("SLUICE_EDGE_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
            ("EDGE_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ];
        assert_eq!(check(&links), (vec![], vec![]));
    }

    #[test]
    fn each_setting_and_each_variable_of_a_test_is_known() {
        let settings = known().collect::<Vec<_>>();
        let all = settings.iter().map(String::as_str).chain(OTHER_NAMES);
        let all: Vec<_> = all.map(|name| (name, "x")).collect();
        assert_eq!(check(&all), (vec![], vec![]));
    }
}
