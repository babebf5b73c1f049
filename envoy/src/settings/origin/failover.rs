// SPDX-License-Identifier: Apache-2.0
//! The second origin behind `SLUICE_ORIGIN`, from `SLUICE_FAILOVER_…`.

use crate::origin::{Addressing, BucketName, Endpoint, Origin, is_region};
use crate::settings::FileSecrets;
use crate::settings::environment::Environment;
use crate::sites::{
    ACCEPTED_SECRET, Credentials, EXPECTED_DAY, EXPECTED_PATIENCE, EXPECTED_SECOND, EXPECTED_TTL,
    Failover, FailoverTimes, OnMissing, day, is_secret, patience, ttl,
};

use super::{ENDPOINT, read_region, read_usual_endpoint};

const ORIGIN: &str = "SLUICE_FAILOVER_ORIGIN";
const S3_ENDPOINT: &str = "SLUICE_FAILOVER_ENDPOINT";
const REGION: &str = "SLUICE_FAILOVER_REGION";
const ON_MISSING: &str = "SLUICE_FAILOVER_ON_MISSING";
const UNTIL: &str = "SLUICE_FAILOVER_UNTIL";
const ADDRESSING: &str = "SLUICE_FAILOVER_ADDRESSING";
const ACCESS_KEY_ID: &str = "SLUICE_FAILOVER_ACCESS_KEY_ID";
const SECRET_ACCESS_KEY: &str = "SLUICE_FAILOVER_SECRET_ACCESS_KEY";
const SESSION_TOKEN: &str = "SLUICE_FAILOVER_SESSION_TOKEN";
/// Settings of the second bucket, which an HTTP server does not have.
const OF_A_BUCKET: [&str; 6] = [
    S3_ENDPOINT,
    REGION,
    ADDRESSING,
    ACCESS_KEY_ID,
    SECRET_ACCESS_KEY,
    SESSION_TOKEN,
];

/// Reads the second origin of the edge whose first one is `first`. `usual` has the credentials of the first one.
/// `None`: none is set, or there is a problem.
pub fn read(
    env: &mut Environment<'_>,
    secrets: &mut FileSecrets,
    first: Option<&Origin>,
    usual: &Credentials,
) -> Option<Failover> {
    let times = read_times(env);
    let on_missing = read_on_missing(env, first);
    let passes = env.switch("SLUICE_FAILOVER_PASS_CLIENT_CREDENTIALS");
    let credentials = read_credentials(env, secrets).unwrap_or_else(|| usual.clone());
    let origin = read_origin(env);
    let text = env.set(ORIGIN)?;
    let (first, origin) = match (first, origin) {
        (Some(first), Some(origin)) => (first, origin),
        (None, _) => {
            env.refuse(ORIGIN, None, "must be unset, or SLUICE_ORIGIN be set");
            return None;
        }
        (_, None) => return None,
    };
    if !Failover::suits(first, &origin) {
        env.refuse(ORIGIN, Some(text), EXPECTED_SECOND);
    }
    Some(Failover {
        origin,
        credentials,
        times: times?,
        passes_client_credentials: passes?,
        on_missing: on_missing?,
    })
}

/// Reads whether the second origin is asked for objects that the `first` one lacks. `None`: there is a problem.
fn read_on_missing(env: &mut Environment<'_>, first: Option<&Origin>) -> Option<Option<OnMissing>> {
    let asks = env.switch(ON_MISSING);
    let is_set = env.set(UNTIL).is_some();
    let until = env.parse(UNTIL, EXPECTED_DAY, day);
    if asks == Some(true) && matches!(first, Some(Origin::Http(_))) {
        env.refuse(
            ON_MISSING,
            Some("on".to_owned()),
            "off, because SLUICE_ORIGIN is not a bucket",
        );
    }
    if is_set && asks == Some(false) {
        let accepted = format!("must be unset, or {ON_MISSING} be on");
        env.refuse(UNTIL, None, accepted);
    }
    Some(asks?.then_some(OnMissing { until }))
}

fn read_times(env: &mut Environment<'_>) -> Option<FailoverTimes> {
    let ttl = env.parse("SLUICE_FAILOVER_TTL", EXPECTED_TTL, ttl);
    let connect_timeout = env.parse(
        "SLUICE_FAILOVER_CONNECT_TIMEOUT",
        EXPECTED_PATIENCE,
        patience,
    );
    let after_silence = env.parse("SLUICE_FAILOVER_AFTER_SILENCE", EXPECTED_PATIENCE, patience);
    Some(FailoverTimes {
        ttl: ttl?,
        connect_timeout: connect_timeout?,
        after_silence: after_silence?,
    })
}

/// Reads the second origin. `None`: none is set, or there is a problem.
fn read_origin(env: &mut Environment<'_>) -> Option<Origin> {
    const ACCEPTED: &str = "s3://BUCKET[/PREFIX] with a valid bucket name and a prefix without empty, . or .. \
                            segments, http://HOST[:PORT] or https://HOST[:PORT]";
    let is_bucket = env
        .set(ORIGIN)
        .is_some_and(|text| text.starts_with("s3://"));
    for name in OF_A_BUCKET.into_iter().filter(|_| !is_bucket) {
        if env.set(name).is_some() {
            let accepted = format!("must be unset, or {ORIGIN} be s3://BUCKET[/PREFIX]");
            env.refuse(name, None, accepted);
        }
    }
    if !is_bucket {
        return env
            .parse(ORIGIN, ACCEPTED, Endpoint::parse)
            .map(Origin::Http);
    }
    let bucket = env.parse(ORIGIN, ACCEPTED, |text| {
        BucketName::parse(text.strip_prefix("s3://")?)
    });
    let endpoint = env.parse(S3_ENDPOINT, ENDPOINT, Endpoint::parse);
    let endpoint = endpoint.or_else(|| read_usual_endpoint(env));
    let region = match env.set(REGION) {
        Some(_) => env.parse(REGION, "a region such as us-east-1", |text| {
            is_region(text).then(|| text.to_owned())
        }),
        None => read_region(env),
    };
    let places = [
        ("path", Addressing::Path),
        ("virtual_host", Addressing::VirtualHost),
    ];
    let addressing = env.choice(ADDRESSING, &places);
    let has_address = endpoint.as_ref().is_some_and(|it| it.ip().is_some());
    if addressing == Some(Addressing::VirtualHost) && has_address {
        let accepted = format!("path, or {S3_ENDPOINT} to have a name");
        env.refuse(ADDRESSING, Some("virtual_host".into()), accepted);
    }
    let placed = bucket?.placed(endpoint, &region?, addressing);
    Some(Origin::Bucket(placed))
}

/// Reads the key for the second bucket. `None`: none is set, or there is a problem.
fn read_credentials(env: &mut Environment<'_>, secrets: &mut FileSecrets) -> Option<Credentials> {
    for name in [ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN] {
        if let Some(secret) = env.secret(name) {
            if !is_secret(&secret.text) {
                env.refuse(name, None, ACCEPTED_SECRET);
            }
            secrets.hold(name, secret.text);
        }
    }
    let [has_id, has_secret, has_token] =
        [ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN].map(|name| env.has_secret(name));
    env.check_pair(ACCESS_KEY_ID, SECRET_ACCESS_KEY, [has_id, has_secret]);
    if has_token && !has_id {
        let accepted = format!("must be unset, or {ACCESS_KEY_ID} be set");
        env.refuse(SESSION_TOKEN, None, accepted);
    }
    (has_id && has_secret).then(|| Credentials::Environment {
        access_key_id: ACCESS_KEY_ID.to_owned(),
        secret_access_key: SECRET_ACCESS_KEY.to_owned(),
        session_token: has_token.then(|| SESSION_TOKEN.to_owned()),
    })
}
