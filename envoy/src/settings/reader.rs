// SPDX-License-Identifier: Apache-2.0
//! From environment variables to settings, with every problem noted on the way.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use super::{
    AccessLog, Cache, Hot, Locations, Medium, Metrics, Purge, Settings, SettingsError, Stats, Tls,
    Tracing,
};
use sluice_core::policy::purge::TokenHash;

use crate::environment::Environment;
use crate::machine::Machine;
use crate::origin::{self, Addressing, BucketName, Endpoint, Origin};
use crate::policy_document::PolicyChoice;
use crate::reserve::{self, Reserve};
use crate::size::{self, Size};
use crate::sns::{Sns, Topic};

const PORT: &str = "a port from 1 to 65535";
/// The largest object that is stored by default. Envoy's cache reads on however slowly a client takes an object, so
/// each slow client may hold as much in memory.
const MAX_OBJECT_BYTES: u64 = 16 << 20;

impl Settings {
    /// Reads the process's environment.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::from_lookup(&|name| std::env::var_os(name))
    }

    /// Reads an environment in which `lookup` finds the variables.
    pub fn from_lookup(lookup: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, SettingsError> {
        let mut env = Environment::new(lookup);
        let settings = Self::read(&mut env);
        env.finish(settings)
    }

    fn read(env: &mut Environment<'_>) -> Option<Self> {
        // NB: everything is read before the first `?`, so that all problems are found at once.
        let origin = read_origin(env);
        let static_credentials = check_credentials(env);
        let bind = env.parse("BIND", "an IPv4 or IPv6 address", |text| text.parse().ok());
        let edge_port = env.parse("EDGE_PORT", PORT, origin::parse_port);
        let tls = read_tls(env);
        let purge = read_purge(env);
        let sns = read_sns(env);
        let purge_port = purge
            .filter(|purge| purge.token.is_some() || sns.is_some())
            .map(|purge| purge.port);
        let admin_port = env.parse("ADMIN_PORT", PORT, origin::parse_port);
        let metrics = read_metrics(env);
        let stats = env.parse("STATS", "few or all", |text| match text {
            "few" => Some(Stats::Few),
            "all" => Some(Stats::All),
            _ => None,
        });
        let access_log = env.parse("ACCESS_LOG", "text, json or off", |text| match text {
            "text" => Some(AccessLog::Text),
            "json" => Some(AccessLog::Json),
            "off" => Some(AccessLog::Off),
            _ => None,
        });
        let tracing = read_tracing(env);
        check_ports(
            env,
            [
                ("EDGE_PORT", edge_port),
                ("EDGE_TLS_PORT", tls.as_ref().map(|tls| tls.port)),
                ("ADMIN_PORT", admin_port),
                ("PURGE_PORT", purge_port),
                ("METRICS_PORT", metrics.map(|metrics| metrics.port)),
            ],
        );
        let health_path = env.parse("HEALTH_PATH", "a path such as /healthz", parse_health_path);
        let drain = env.parse(
            "DRAIN_SECONDS",
            "a number of seconds from 0 to 3600",
            parse_count::<0, 3600>,
        );
        let locations = read_locations(env);
        let cache = read_cache(env, locations.as_ref());
        let hot = read_hot(env);
        let policy = read_policy(env);
        let concurrency = read_concurrency(env);
        let ca_file = read_file(env, "SSL_CERT_FILE");
        let (cache, hot) = (cache?, hot?);
        let concurrency = concurrency?;
        let reserved = cache.memory_bytes() + hot.max_bytes * u64::from(concurrency);
        Some(Self {
            static_credentials: static_credentials || origin.is_none(),
            origin,
            bind: bind?,
            edge_port: edge_port?,
            tls,
            purge: purge?,
            sns,
            admin_port: admin_port?,
            metrics,
            stats: stats?,
            access_log: access_log?,
            tracing,
            health_path: health_path?,
            drain: Duration::from_secs(drain?),
            policy,
            concurrency,
            ca_file,
            locations: locations?,
            machine: Machine::detect(reserved),
            cache,
            hot,
            filter: true,
            stream_idle: Duration::from_secs(300),
            origin_idle: Duration::from_secs(60),
        })
    }
}

fn read_origin(env: &mut Environment<'_>) -> Option<Origin> {
    const ENDPOINT: &str = "http://HOST[:PORT] or https://HOST[:PORT]";
    const REGION: &str = "a region such as us-east-1";
    let endpoint = env.parse("S3_ENDPOINT", ENDPOINT, Endpoint::parse);
    let region = env.parse("AWS_REGION", REGION, |text| {
        is_region(text).then(|| text.to_owned())
    });
    let addressing = env.parse("S3_ADDRESSING", "path or virtual_host", Addressing::parse);
    let text = env.set("ORIGIN");
    if let (Some(endpoint), None) = (
        &endpoint,
        text.as_ref().filter(|text| text.starts_with("s3://")),
    ) {
        env.refuse(
            "S3_ENDPOINT",
            Some(endpoint.to_string()),
            "to be unset, or ORIGIN to be s3://BUCKET[/PREFIX]",
        );
    }
    let text = text?;
    if let Some(rest) = text.strip_prefix("s3://") {
        let Some(bucket) = BucketName::parse(rest) else {
            env.refuse("ORIGIN", Some(text), "s3://BUCKET[/PREFIX] with a valid bucket name and a prefix without empty, . or .. segments");
            return None;
        };
        let by_host = addressing == Some(Addressing::VirtualHost);
        if by_host && endpoint.as_ref().is_some_and(|it| it.ip().is_some()) {
            let accepted =
                "path, or S3_ENDPOINT to have a name: no bucket's name stands before an address";
            env.refuse("S3_ADDRESSING", Some("virtual_host".into()), accepted);
        }
        let region = region?;
        return Some(Origin::Bucket(match endpoint {
            Some(endpoint) => bucket.at(endpoint, &region, addressing.unwrap_or(Addressing::Path)),
            None => bucket.at_aws(&region, addressing),
        }));
    }
    let origin = Endpoint::parse(&text).map(Origin::Http);
    if origin.is_none() {
        env.refuse(
            "ORIGIN",
            Some(text),
            format!("s3://BUCKET[/PREFIX], {ENDPOINT}"),
        );
    }
    origin
}

fn is_region(text: &str) -> bool {
    text.len() <= 32
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Whether there are credentials. Envoy reads them from its environment; here they are only checked for halves.
fn check_credentials(env: &mut Environment<'_>) -> bool {
    let key = env.set("AWS_ACCESS_KEY_ID").is_some();
    let secret = env.set("AWS_SECRET_ACCESS_KEY").is_some();
    match (key, secret) {
        (true, false) => env.refuse(
            "AWS_SECRET_ACCESS_KEY",
            None,
            "must be set, as AWS_ACCESS_KEY_ID is",
        ),
        (false, true) => env.refuse(
            "AWS_ACCESS_KEY_ID",
            None,
            "must be set, as AWS_SECRET_ACCESS_KEY is",
        ),
        (true, true) | (false, false) => {}
    }
    if env.set("AWS_SESSION_TOKEN").is_some() && !key {
        env.refuse(
            "AWS_SESSION_TOKEN",
            None,
            "must be unset, or AWS_ACCESS_KEY_ID be set",
        );
    }
    key && secret
}

fn read_tls(env: &mut Environment<'_>) -> Option<Tls> {
    let wants_port = env.set("EDGE_TLS_PORT").is_some();
    let port = env.parse("EDGE_TLS_PORT", PORT, origin::parse_port);
    let (has_cert, has_key) = (env.set("TLS_CERT").is_some(), env.set("TLS_KEY").is_some());
    if has_cert && !has_key {
        env.refuse("TLS_KEY", None, "must be set, as TLS_CERT is");
    }
    if has_key && !has_cert {
        env.refuse("TLS_CERT", None, "must be set, as TLS_KEY is");
    }
    if wants_port && !has_cert && !has_key {
        env.refuse("EDGE_TLS_PORT", None, "needs TLS_CERT and TLS_KEY");
    }
    let (cert, key) = (read_file(env, "TLS_CERT"), read_file(env, "TLS_KEY"));
    Some(Tls {
        port: port?,
        cert: cert?,
        key: key?,
    })
}

fn read_purge(env: &mut Environment<'_>) -> Option<Purge> {
    const SHORTEST: usize = 16;
    let token = env.set("PURGE_TOKEN");
    let visible = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic());
    let good = token
        .as_ref()
        .is_none_or(|token| token.len() >= SHORTEST && visible(token));
    if !good {
        // NB: it is not shown.
        let accepted = "must be at least 16 visible ASCII characters without spaces";
        env.refuse("PURGE_TOKEN", None, accepted);
    }
    let bind = env.parse("PURGE_BIND", "an IPv4 or IPv6 address", |text| {
        text.parse().ok()
    });
    let port = env.parse("PURGE_PORT", PORT, origin::parse_port);
    Some(Purge {
        token: token.map(|token| TokenHash::of(token.as_bytes())),
        bind: bind?,
        port: port?,
    })
}

fn read_metrics(env: &mut Environment<'_>) -> Option<Metrics> {
    let bind = env.parse("METRICS_BIND", "an IPv4 or IPv6 address", |text| {
        text.parse().ok()
    });
    let port = env.parse("METRICS_PORT", PORT, origin::parse_port);
    Some(Metrics {
        bind: bind?,
        port: port?,
    })
}

fn read_tracing(env: &mut Environment<'_>) -> Option<Tracing> {
    const COLLECTOR: &str = "http://HOST[:PORT]";
    let collector = env.parse("OTEL_EXPORTER_OTLP_ENDPOINT", COLLECTOR, |text| {
        let text = text.strip_suffix('/').unwrap_or(text);
        Endpoint::parse(text).filter(|endpoint| !endpoint.tls)
    });
    let service = env.parse("OTEL_SERVICE_NAME", "1 to 255 visible characters", |text| {
        let visible = text.chars().all(|c| !c.is_control());
        (text.len() < 256 && visible).then(|| text.to_owned())
    });
    let ratio = env.parse("OTEL_TRACES_SAMPLER_ARG", "a ratio from 0 to 1", |text| {
        let ratio: f64 = text.parse().ok()?;
        (0.0..=1.0).contains(&ratio).then_some(ratio)
    });
    Some(Tracing {
        collector: collector?,
        service: service?,
        ratio: ratio?,
    })
}

fn read_sns(env: &mut Environment<'_>) -> Option<Sns> {
    let topics = env.parse("SNS_TOPICS", Topic::ACCEPTED, |text| {
        text.split(',').map(str::trim).map(Topic::parse).collect()
    });
    let proxy = env.parse("SNS_PROXY", "http://HOST[:PORT]", |text| {
        Endpoint::parse(text).filter(|proxy| !proxy.tls)
    });
    let is_set = env.set("SNS_TOPICS").is_some();
    if proxy.is_some() && !is_set {
        env.refuse("SNS_PROXY", None, "must be unset, or SNS_TOPICS be set");
    }
    if let Some(origin) = env
        .set("ORIGIN")
        .filter(|origin| is_set && !origin.starts_with("s3://"))
    {
        let accepted =
            "s3://BUCKET[/PREFIX], or SNS_TOPICS to be unset: only a bucket has notifications";
        env.refuse("ORIGIN", Some(origin), accepted);
    }
    Some(Sns {
        topics: topics?,
        proxy,
    })
}

fn check_ports(env: &mut Environment<'_>, ports: [(&'static str, Option<u16>); 5]) {
    for (index, (name, port)) in ports.iter().enumerate() {
        let twin = ports
            .iter()
            .take(index)
            .find(|(_, other)| port.is_some() && other == port);
        if let (Some((other, _)), Some(port)) = (twin, port) {
            env.refuse(
                name,
                Some(port.to_string()),
                format!("another port than {other}'s"),
            );
        }
    }
}

fn parse_health_path(text: &str) -> Option<String> {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    (text.len() > 1 && text.starts_with('/') && text.bytes().all(safe)).then(|| text.to_owned())
}

fn read_cache(env: &mut Environment<'_>, locations: Option<&Locations>) -> Option<Cache> {
    let medium = env.parse("CACHE", "disk or memory", |text| match text {
        "disk" => Some(Medium::Disk),
        "memory" => Some(Medium::Memory),
        _ => None,
    });
    let dir = env.set("CACHE_DIR").map(PathBuf::from);
    let max_bytes = env.parse("CACHE_MAX_BYTES", size::ACCEPTED, size::parse);
    let max_entries = env.parse(
        "CACHE_MAX_ENTRIES",
        "a number from 1 to 1000000000",
        parse_count::<1, 1_000_000_000>,
    );
    let max_object_bytes = env.parse("CACHE_MAX_OBJECT_BYTES", size::ACCEPTED, size::parse);
    let reserve = env.parse("CACHE_RESERVE", reserve::ACCEPTED, Reserve::parse);
    let max_bytes = max_bytes?;
    if let Some(object) = max_object_bytes.filter(|object| *object > max_bytes) {
        let accepted = format!("at most CACHE_MAX_BYTES, {}", Size(max_bytes));
        env.refuse(
            "CACHE_MAX_OBJECT_BYTES",
            Some(Size(object).to_string()),
            accepted,
        );
    }
    let medium = medium?;
    let dir = dir.unwrap_or(match medium {
        Medium::Disk => locations?.state.join("cache"),
        Medium::Memory => PathBuf::from("/dev/shm"),
    });
    let default = MAX_OBJECT_BYTES.min(max_bytes / 4).max(1);
    let max_object_bytes = max_object_bytes.unwrap_or(default);
    Some(Cache {
        medium,
        dir,
        max_bytes,
        max_entries: max_entries?,
        max_object_bytes,
        reserve: reserve?,
    })
}

fn read_hot(env: &mut Environment<'_>) -> Option<Hot> {
    const MOST: u64 = 1 << 30;
    let accepted = "0, or a number of bytes to 1GiB, plain or with KiB or MiB";
    let max_bytes = env.parse("HOT_BYTES", accepted, |text| match text {
        "0" => Some(0),
        _ => size::parse(text).filter(|bytes| *bytes <= MOST),
    });
    let accepted = "a number of bytes from 1 to 1GiB, plain or with KiB or MiB";
    let max_object_bytes = env.parse("HOT_OBJECT_BYTES", accepted, |text| {
        size::parse(text).filter(|bytes| *bytes <= MOST)
    });
    Some(Hot {
        max_bytes: max_bytes?,
        max_object_bytes: max_object_bytes?,
    })
}

fn parse_count<const LEAST: u64, const MOST: u64>(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|count| digits && (LEAST..=MOST).contains(count))
}

fn read_concurrency(env: &mut Environment<'_>) -> Option<u32> {
    const NAME: &str = "CONCURRENCY";
    if env.set(NAME).is_none() {
        return Some(Machine::cores());
    }
    let count = env.parse(
        NAME,
        "a number of workers from 1 to 512",
        parse_count::<1, 512>,
    )?;
    u32::try_from(count).ok()
}

fn read_locations(env: &mut Environment<'_>) -> Option<Locations> {
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("sluice.wasm"));
    let wasm = env.set("SLUICE_WASM").map(PathBuf::from).or_else(beside);
    Some(Locations {
        envoy: env.text("SLUICE_ENVOY")?.into(),
        wasm: std::path::absolute(wasm?).ok()?,
        minio: env.set("SLUICE_MINIO").map(PathBuf::from),
        state: std::path::absolute(env.text("SLUICE_STATE")?).ok()?,
    })
}

/// The name of a policy that comes with the edge, or else a file.
fn read_policy(env: &mut Environment<'_>) -> Option<PolicyChoice> {
    let text = env.set("POLICY")?;
    PolicyChoice::ready_made(&text).or_else(|| read_file(env, "POLICY").map(PolicyChoice::File))
}

/// The path of a file that has to be readable.
fn read_file(env: &mut Environment<'_>, name: &'static str) -> Option<PathBuf> {
    let text = env.set(name)?;
    let problem = match std::fs::metadata(&text) {
        Ok(metadata) if metadata.is_dir() => Some("it is a folder".to_owned()),
        Ok(_) => File::open(&text).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(problem) = problem {
        env.refuse(
            name,
            Some(text),
            format!("a file that can be read ({problem})"),
        );
        return None;
    }
    std::path::absolute(text).ok()
}
