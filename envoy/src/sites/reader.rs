// SPDX-License-Identifier: Apache-2.0
//! Reads the file of sites.

use std::path::Path;

use serde_json::{Value, json};
use sluice_core::policy::purge::TokenHash;

use super::access::{AccessReader, SiteAccess};
use super::certificate::Certificate;
use super::credentials::Credentials;
use super::failover::{
    EXPECTED_MOVE, EXPECTED_REMINDER, EXPECTED_SECOND, Failover, FailoverTimes, OnMissing, day,
    patience, ttl,
};
use super::fields::{FILE, keepalive, max_age};
use super::file::{Document, Problem, shown};
use super::host::is_path;
use super::hsts::Hsts;
use super::policy::{ChosenPolicy, check_edge};
use super::profile::ProfileKeys;
use super::purge_token::{ACCEPTED_TOKEN, hash_of_token};
use super::servers::{Servers, read_servers};
use super::site::Site;
use super::surroundings::Surroundings;
use super::{Sites, table};
use crate::origin::{Addressing, BucketName, Endpoint, Origin, is_region};

impl Sites {
    /// Reads a file of sites in YAML or JSON.
    ///
    /// # Errors
    /// All problems of the file, and of the files that it names.
    pub fn read(file: &str, surroundings: Surroundings<'_>) -> Result<Self, Vec<Problem>> {
        let document = Document::read(Path::new(file), file).map_err(|problem| vec![problem])?;
        let mut reader = Reader {
            document: &document,
            surroundings,
            edge: json!({}),
            problems: Vec::new(),
        };
        let sites = reader.read();
        let mut problems = reader.problems;
        if problems.is_empty() {
            return Ok(sites);
        }
        problems.sort();
        problems.dedup();
        Err(problems)
    }
}

struct Reader<'a> {
    document: &'a Document,
    surroundings: Surroundings<'a>,
    /// The sections that all sites share, as far as they are valid.
    edge: Value,
    problems: Vec<Problem>,
}

/// A site in the file.
struct Entry<'a> {
    /// The path of the site, such as `sites[1]`.
    path: String,
    value: &'a Value,
}

impl Entry<'_> {
    fn text(&self, field: &str) -> Option<&str> {
        self.value.get(field)?.as_str()
    }

    fn field(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }
}

impl<'a> Reader<'a> {
    /// Reads as much as possible, and notes the problems.
    fn read(&mut self) -> Sites {
        let value = &self.document.value;
        let mut unfit = Vec::new();
        FILE.check(value, "", &mut unfit);
        for (field, message) in unfit {
            self.refuse(&field, message);
        }
        let edge = value.get("edge").filter(|edge| edge.is_object());
        let edge = edge.cloned().unwrap_or_else(|| json!({}));
        match check_edge(self.document, &edge) {
            Some(problem) => self.problems.push(problem),
            None => self.edge.clone_from(&edge),
        }
        let entries = value.get("sites").and_then(Value::as_array);
        let mut sites = Vec::new();
        let mut paths = Vec::new();
        for (index, value) in entries.into_iter().flatten().enumerate() {
            let path = format!("sites[{index}]");
            if let Some(site) = self.read_site(&Entry {
                path: path.clone(),
                value,
            }) {
                sites.push(site);
                paths.push(path);
            }
        }
        let document = self.document;
        let mut refuse =
            |field: &str, message: String| self.problems.push(document.problem(field, message));
        table::share_certificates(&mut sites);
        table::check(&sites, &paths, self.surroundings, &mut refuse);
        Sites { edge, sites }
    }

    /// Reads a site; `None`: its origin cannot be read, and the other fields depend on it.
    fn read_site(&mut self, entry: &Entry<'_>) -> Option<Site> {
        // NB: every field is read before the `?`, so that one start reports all problems.
        let origin = self.read_origin(entry);
        let credentials = self.read_credentials(entry);
        let purge_token = self.read_purge_token(entry);
        let hsts = self.read_hsts(entry);
        let servers = self.read_servers(entry);
        let failover = self.read_failover(entry, origin.as_ref(), &credentials);
        let origin = origin?;
        self.check_bucket_fields(entry, &origin);
        let (policy_name, policy) = self.read_policy(entry, &origin);
        let hosts = entry.value.get("hosts").and_then(Value::as_array);
        let hosts = hosts.into_iter().flatten().filter_map(Value::as_str);
        let redirect = entry.value.get("redirect_to_https");
        let share = entry.value.get("share").and_then(Value::as_u64);
        let token = entry.text("purge_token").map(str::to_owned);
        let access = self.read_access(entry, &origin);
        let keys = access.iter().flat_map(SiteAccess::variables);
        let keys = keys.map(str::to_owned);
        let of_second = failover.iter();
        let of_second = of_second.flat_map(|failover| failover.credentials.own_variables());
        let secret_variables = credentials
            .own_variables()
            .chain(of_second)
            .chain(token)
            .chain(keys)
            .collect();
        Some(Site {
            name: entry.text("name").unwrap_or_default().to_owned(),
            hosts: hosts.map(str::to_ascii_lowercase).collect(),
            path: entry.text("path").map(str::to_owned),
            origin,
            servers,
            keepalive: entry.text("keepalive").and_then(keepalive),
            credentials,
            failover,
            hedge_after: entry.text("hedge_after").and_then(patience),
            policy_name,
            policy,
            access,
            certificate: self.read_certificate(entry),
            redirect_to_https: redirect.and_then(Value::as_bool).unwrap_or_default(),
            hsts,
            share: share
                .and_then(|share| u32::try_from(share).ok())
                .unwrap_or(1),
            purge_token,
            secret_variables,
        })
    }

    /// Reads the servers of an HTTP origin beside the first one, and their health checks. A bucket has none.
    fn read_servers(&mut self, entry: &Entry<'_>) -> Servers {
        let listed = entry.value.get("origin").and_then(Value::as_array);
        let texts = listed.into_iter().flatten().filter_map(Value::as_str);
        let health_check = entry.text("health_check").map(str::to_owned);
        match read_servers(texts) {
            Ok(servers) => Servers {
                others: servers.map(|(_, others)| others).unwrap_or_default(),
                health_check,
            },
            Err((text, expected)) => {
                let message = format!("{text:?}: expected {expected}");
                self.refuse(&entry.field("origin"), message);
                Servers::default()
            }
        }
    }

    fn read_origin(&mut self, entry: &Entry<'_>) -> Option<Origin> {
        if let Some(listed) = entry.value.get("origin").and_then(Value::as_array) {
            let first = listed.first().and_then(Value::as_str)?;
            return Endpoint::parse(first).map(Origin::Http);
        }
        let text = entry.text("origin")?;
        let Some(bucket) = text.strip_prefix("s3://") else {
            return Endpoint::parse(text).map(Origin::Http);
        };
        let endpoint = match entry.text("endpoint") {
            Some(text) => Endpoint::parse(text),
            None => self.surroundings.endpoint.cloned(),
        };
        let addressing = match entry.text("addressing") {
            Some("path") => Some(Addressing::Path),
            Some("virtual_host") => Some(Addressing::VirtualHost),
            _ => None,
        };
        let by_host = addressing == Some(Addressing::VirtualHost);
        if by_host
            && endpoint
                .as_ref()
                .is_some_and(|endpoint| endpoint.ip().is_some())
        {
            let message = "\"virtual_host\": expected path, or an endpoint with a name: no bucket's name stands before \
                           an address";
            self.refuse(&entry.field("addressing"), message);
        }
        let region = entry.text("region").filter(|region| is_region(region));
        let region = region.unwrap_or(self.surroundings.region);
        let bucket = BucketName::parse(bucket)?;
        Some(Origin::Bucket(bucket.placed(endpoint, region, addressing)))
    }

    /// Refuses fields that only a bucket may have.
    fn check_bucket_fields(&mut self, entry: &Entry<'_>, origin: &Origin) {
        if matches!(origin, Origin::Bucket(_)) {
            if entry.value.get("health_check").is_some() {
                let message = "expected no health_check, or an origin with http:// or https://";
                self.refuse(&entry.field("health_check"), message);
            }
            return;
        }
        for name in ["endpoint", "region", "addressing", "credentials"] {
            if entry.value.get(name).is_some() {
                let message =
                    format!("expected no {name}, or an origin that is s3://BUCKET[/PREFIX]");
                self.refuse(&entry.field(name), message);
            }
        }
    }

    fn read_credentials(&mut self, entry: &Entry<'_>) -> Credentials {
        let path = entry.field("credentials");
        let Some(value) = entry
            .value
            .get("credentials")
            .filter(|value| value.is_object())
        else {
            return Credentials::Chain;
        };
        let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        if let (Some(file), None) = (text("file"), text("access_key_id")) {
            let file = self.document.path(&file);
            let profile = text("profile").unwrap_or_else(|| "default".to_owned());
            if let Err(error) = ProfileKeys::read(&file, &profile) {
                let message = format!(
                    "{}: expected {error:#}",
                    shown(&file.to_string_lossy().into())
                );
                self.refuse(&format!("{path}.file"), message);
            }
            return Credentials::File {
                path: file,
                profile,
            };
        }
        for field in ["access_key_id", "secret_access_key", "session_token"] {
            if let Some(name) = text(field) {
                self.check_variable(&format!("{path}.{field}"), &name);
            }
        }
        Credentials::Environment {
            access_key_id: text("access_key_id").unwrap_or_default(),
            secret_access_key: text("secret_access_key").unwrap_or_default(),
            session_token: text("session_token"),
        }
    }

    /// Reads the second origin of a site whose first one is `first`. `usual` has the credentials of the site.
    fn read_failover(
        &mut self,
        site: &Entry<'_>,
        first: Option<&Origin>,
        usual: &Credentials,
    ) -> Option<Failover> {
        let value = site.value.get("failover");
        let entry = Entry {
            path: site.field("failover"),
            value: value.filter(|value| value.is_object())?,
        };
        let credentials = match entry.value.get("credentials") {
            Some(_) => self.read_credentials(&entry),
            None => usual.clone(),
        };
        let origin = self.read_origin(&entry)?;
        self.check_bucket_fields(&entry, &origin);
        if first.is_some_and(|first| !Failover::suits(first, &origin)) {
            let text = entry.text("origin").unwrap_or_default();
            let message = format!("{text:?}: expected {EXPECTED_SECOND}");
            self.refuse(&entry.field("origin"), message);
        }
        let usual = FailoverTimes::default();
        let time = |name: &str| entry.text(name).and_then(patience);
        let passes = entry.value.get("pass_client_credentials");
        Some(Failover {
            origin,
            credentials,
            times: FailoverTimes {
                ttl: entry.text("ttl").and_then(ttl).unwrap_or(usual.ttl),
                connect_timeout: time("connect_timeout").unwrap_or(usual.connect_timeout),
                after_silence: time("after_silence").unwrap_or(usual.after_silence),
            },
            passes_client_credentials: passes.and_then(Value::as_bool).unwrap_or_default(),
            on_missing: self.read_on_missing(&entry, first),
        })
    }

    /// Reads whether the second origin is asked for objects that the `first` one lacks.
    fn read_on_missing(&mut self, entry: &Entry<'_>, first: Option<&Origin>) -> Option<OnMissing> {
        let asks = entry.value.get("on_missing").and_then(Value::as_bool) == Some(true);
        if asks && matches!(first, Some(Origin::Http(_))) {
            let message = format!("true: expected {EXPECTED_MOVE}");
            self.refuse(&entry.field("on_missing"), message);
        }
        let until = entry.text("until");
        if let Some(text) = until.filter(|_| !asks) {
            let message = format!("{text:?}: expected {EXPECTED_REMINDER}");
            self.refuse(&entry.field("until"), message);
        }
        asks.then(|| OnMissing {
            until: until.and_then(day),
        })
    }

    /// Refuses the name of a variable that is not set. An invalid name has been refused already.
    fn check_variable(&mut self, field: &str, name: &str) -> Option<String> {
        let is_name = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
        if !name.bytes().all(is_name) {
            return None;
        }
        let expected = "expected the name of an environment variable that is set";
        let value = match self.surroundings.secret(name) {
            Ok(Some(value)) => value,
            Ok(None) => return self.refuse_variable(field, format!("{name:?}: {expected}")),
            Err(error) => return self.refuse_variable(field, error),
        };
        value.into_string().ok()
    }

    fn refuse_variable(&mut self, field: &str, message: String) -> Option<String> {
        self.refuse(field, message);
        None
    }

    fn read_purge_token(&mut self, entry: &Entry<'_>) -> Option<TokenHash> {
        let field = entry.field("purge_token");
        let name = entry.text("purge_token")?;
        let token = self.check_variable(&field, name)?;
        let hash = hash_of_token(&token);
        if hash.is_none() {
            // NB: the value is a secret, so the error must not show it.
            self.refuse(&field, format!("the value of {name} {ACCEPTED_TOKEN}"));
        }
        hash
    }

    fn read_access(&mut self, entry: &Entry<'_>, origin: &Origin) -> Option<SiteAccess> {
        let value = entry
            .value
            .get("access")
            .filter(|value| value.is_object())?;
        let reader = AccessReader {
            document: self.document,
            path: &entry.field("access"),
            lookup: self.surroundings.lookup,
        };
        let read = reader.read(value, origin);
        read.map_err(|problems| self.problems.extend(problems)).ok()
    }

    fn read_hsts(&mut self, entry: &Entry<'_>) -> Option<String> {
        let value = entry.value.get("hsts")?;
        let field = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or_default();
        let age = value
            .as_str()
            .or(value.get("max_age").and_then(Value::as_str))?;
        let hsts = Hsts {
            max_age: max_age(age)?,
            include_subdomains: field("include_subdomains"),
            preload: field("preload"),
        };
        if !hsts.may_be_listed() {
            let message =
                "true: expected include_subdomains to be true and max_age to be at least 365d";
            self.refuse(&entry.field("hsts.preload"), message);
        }
        Some(hsts.to_string())
    }

    fn read_certificate(&self, entry: &Entry<'_>) -> Option<Certificate> {
        let path = |field: &str| {
            let text = entry.value.get("tls")?.get(field)?.as_str()?;
            Some(self.document.path(text))
        };
        Some(Certificate {
            chain: path("certificate")?,
            key: path("key")?,
        })
    }

    /// The name of the policy, and as many of its sections as can be read.
    fn read_policy(&mut self, entry: &Entry<'_>, origin: &Origin) -> (String, Value) {
        let value = entry.value.get("policy");
        if value.is_some_and(|value| !value.is_object() && value.as_str().is_none_or(str::is_empty))
        {
            return (String::new(), json!({}));
        }
        match ChosenPolicy::read(self.document, &entry.field("policy"), value, origin) {
            Ok(policy) => {
                let path = entry.text("path").filter(|path| is_path(path));
                self.problems.extend(policy.check(&self.edge, origin, path));
                (policy.name, policy.value)
            }
            Err(problem) => {
                self.problems.push(problem);
                (String::new(), json!({}))
            }
        }
    }

    fn refuse(&mut self, field: &str, message: impl Into<String>) {
        self.problems.push(self.document.problem(field, message));
    }
}
