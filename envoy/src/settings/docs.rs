// SPDX-License-Identifier: Apache-2.0
//! The one list of settings: names, defaults and meanings. The defaults are read from it, and the tables in the
//! documentation are made from it.

use std::fmt::Write as _;

/// The documentation of one setting.
#[derive(Clone, Copy, Debug)]
pub struct SettingDoc {
    /// The environment variable.
    pub name: &'static str,
    /// The default.
    pub default: DefaultValue,
    /// The meaning, in Markdown.
    pub meaning: &'static str,
}

/// The default of a setting, for a variable that is unset or empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// This text, read as if it were the variable's value.
    Value(&'static str),
    /// A default that the code works out, described in Markdown.
    Derived(&'static str),
}

const fn doc(name: &'static str, default: DefaultValue, meaning: &'static str) -> SettingDoc {
    SettingDoc {
        name,
        default,
        meaning,
    }
}

use DefaultValue::{Derived, Value};

/// The settings of the edge.
pub const SETTINGS: &[SettingDoc] = &[
    doc(
        "ORIGIN",
        Derived("a demo site in a private bucket of an embedded MinIO"),
        "What stands behind the edge: `s3://BUCKET[/PREFIX]`, `http://HOST[:PORT]` or `https://HOST[:PORT]`",
    ),
    doc(
        "S3_ENDPOINT",
        Derived("AWS"),
        "Where the bucket is, `http://HOST[:PORT]` or `https://HOST[:PORT]`",
    ),
    doc(
        "S3_ADDRESSING",
        Derived(
            "`path` at an `S3_ENDPOINT`, `virtual_host` on AWS unless the bucket's name has dots",
        ),
        "The place of the bucket's name: `path` (`HOST/BUCKET/KEY`) or `virtual_host` (`BUCKET.HOST/KEY`)",
    ),
    doc(
        "AWS_REGION",
        Value("us-east-1"),
        "The region for which requests to the bucket are signed",
    ),
    doc(
        "AWS_ACCESS_KEY_ID",
        Derived("the standard chain: web identity, container and instance roles"),
        "The key that signs requests to the bucket; goes with `AWS_SECRET_ACCESS_KEY`",
    ),
    doc(
        "AWS_SECRET_ACCESS_KEY",
        Derived("as above"),
        "The secret of `AWS_ACCESS_KEY_ID`",
    ),
    doc(
        "AWS_SESSION_TOKEN",
        Derived("none"),
        "The session token of temporary credentials",
    ),
    doc(
        "BIND",
        Value("127.0.0.1"),
        "The address of the listeners for clients (in the container image `0.0.0.0`)",
    ),
    doc(
        "EDGE_PORT",
        Value("8080"),
        "The port for HTTP/1.1 and cleartext HTTP/2",
    ),
    doc(
        "EDGE_TLS_PORT",
        Value("8443"),
        "The port for HTTP/1.1 and HTTP/2 over TLS 1.2 and later, with a certificate only",
    ),
    doc(
        "TLS_CERT",
        Derived("no TLS listener"),
        "The certificate chain, a PEM file; goes with `TLS_KEY`",
    ),
    doc(
        "TLS_KEY",
        Derived("no TLS listener"),
        "The certificate's private key, a PEM file",
    ),
    doc(
        "ADMIN_PORT",
        Value("9901"),
        "The port of Envoy's admin interface, on loopback only",
    ),
    doc(
        "METRICS_PORT",
        Derived("none: the admin interface has them"),
        "The port of a listener for the metrics, `/stats/prometheus`, and nothing else",
    ),
    doc(
        "METRICS_BIND",
        Value("127.0.0.1"),
        "The address of the listener for the metrics, which speaks cleartext HTTP",
    ),
    doc(
        "STATS",
        Value("few"),
        "Which of Envoy's statistics the metrics have beside the filter's: `few`, those that the rules, alerts and the dashboard use, or `all`",
    ),
    doc(
        "ACCESS_LOG",
        Value("text"),
        "How requests are logged on standard output: `text`, a line for people; `json`, an object on a line; or `off`",
    ),
    doc(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        Derived("no tracing"),
        "The OpenTelemetry collector that takes traces over HTTP, `http://HOST[:PORT]`",
    ),
    doc(
        "OTEL_SERVICE_NAME",
        Value("sluice"),
        "The edge's name in traces",
    ),
    doc(
        "OTEL_TRACES_SAMPLER_ARG",
        Value("1"),
        "The part of the requests that is traced, 0 to 1; a request with a sampled `traceparent` is always traced",
    ),
    doc(
        "PURGE_TOKEN",
        Derived("no purges"),
        "The secret of callers that may purge, at least 16 characters; the edge keeps only its hash",
    ),
    doc(
        "PURGE_BIND",
        Value("127.0.0.1"),
        "The address of the listener for purges, which speaks cleartext HTTP",
    ),
    doc(
        "PURGE_PORT",
        Value("8081"),
        "The port of the listener for purges",
    ),
    doc(
        "SNS_TOPICS",
        Derived("none"),
        "The topics of Amazon SNS whose notifications of the bucket are accepted, on `/sns` of the listener for purges: \
         `arn:aws:sns:REGION:ACCOUNT:NAME`, separated by commas",
    ),
    doc(
        "SNS_PROXY",
        Derived("none"),
        "The HTTP proxy for requests to SNS, which fetch certificates and confirm subscriptions, `http://HOST[:PORT]`",
    ),
    doc(
        "HEALTH_PATH",
        Value("/healthz"),
        "The path on which a worker answers 200 when it is ready and 503 when it drains; never cached",
    ),
    doc(
        "DRAIN_SECONDS",
        Value("8"),
        "How many seconds requests under way have to end after SIGTERM or Ctrl-C, 0 to 3600",
    ),
    doc(
        "CACHE",
        Value("disk"),
        "`disk` survives a restart; `memory` is the same bounded store on a tmpfs and ends with the edge",
    ),
    doc(
        "CACHE_DIR",
        Derived("`cache` below the state folder; `/dev/shm` for `memory`"),
        "The cache's folder, for one edge at a time; for `memory` the tmpfs to put it on",
    ),
    doc(
        "CACHE_MAX_BYTES",
        Value("1GiB"),
        "How many bytes the cache may hold: plain, or with `KiB`, `MiB`, `GiB`, `TiB`",
    ),
    doc(
        "CACHE_MAX_ENTRIES",
        Value("100000"),
        "How many objects the cache may hold",
    ),
    doc(
        "CACHE_MAX_OBJECT_BYTES",
        Derived("`16MiB`, or a quarter of `CACHE_MAX_BYTES` where that is less"),
        "Larger objects pass through uncached. A client that reads a stored object slowly may hold all of it in memory",
    ),
    doc(
        "CACHE_RESERVE",
        Value("5%"),
        "How much of the cache's file system stays free; with less free space nothing is stored. `0` for none, a size, or a percentage of \
         the file system, which counts as `64MiB` at least; at most half of the file system",
    ),
    doc(
        "HOT_BYTES",
        Value("32MiB"),
        "How much memory each worker may use for hot copies: small objects that are asked for often, and that it serves without \
         the cache; at most `1GiB`, `0` for none",
    ),
    doc(
        "HOT_OBJECT_BYTES",
        Value("64KiB"),
        "The largest object that may become a hot copy",
    ),
    doc(
        "POLICY",
        Derived("the built-in policy for the kind of origin"),
        "The filter's policy: a YAML or JSON file, or one that comes with the edge: `bucket`, `http`, `spa`, \
         `downloads`, `versioned-assets`",
    ),
    doc(
        "CONCURRENCY",
        Derived("all cores"),
        "The number of Envoy's workers, 1 to 512",
    ),
    doc(
        "SSL_CERT_FILE",
        Derived("the system's CA bundle"),
        "The CA certificates with which an `https` origin and SNS are verified",
    ),
];

/// The settings for the edge's parts, which `make run` and the container image set.
pub const LOCATIONS: &[SettingDoc] = &[
    doc(
        "SLUICE_ENVOY",
        Value("envoy"),
        "The Envoy binary: a path, or a name to look up in `PATH`",
    ),
    doc(
        "SLUICE_WASM",
        Derived("`sluice.wasm` beside the `sluice` binary"),
        "The filter's Wasm module",
    ),
    doc(
        "SLUICE_MINIO",
        Derived("none: `ORIGIN` must be set"),
        "The MinIO binary of the demo",
    ),
    doc(
        "SLUICE_STATE",
        Value(".sluice/state"),
        "The folder for the rendered configuration, the demo's data and the cache",
    ),
];

/// The documentation of the setting `name`.
pub fn find(name: &str) -> Option<&'static SettingDoc> {
    SETTINGS
        .iter()
        .chain(LOCATIONS)
        .find(|setting| setting.name == name)
}

/// A list of settings as a table in Markdown.
pub fn markdown_table(settings: &[SettingDoc]) -> String {
    let mut table = String::from("| variable | default | meaning |\n|---|---|---|\n");
    for SettingDoc {
        name,
        default,
        meaning,
    } in settings
    {
        let default = match default {
            Value(text) => format!("`{text}`"),
            Derived(words) => (*words).to_owned(),
        };
        // NB: writing to a String cannot fail.
        let _ = writeln!(table, "| `{name}` | {default} | {meaning} |");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_setting_is_defined_twice() {
        let mut names: Vec<_> = SETTINGS
            .iter()
            .chain(LOCATIONS)
            .map(|setting| setting.name)
            .collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn no_text_breaks_the_table() {
        for setting in SETTINGS.iter().chain(LOCATIONS) {
            assert!(!setting.meaning.contains(['|', '\n']), "{}", setting.name);
        }
    }
}
