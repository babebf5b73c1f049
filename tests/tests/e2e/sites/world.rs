// SPDX-License-Identifier: Apache-2.0
//! Twenty sites of one file, each with its own origin: buckets with credentials that open no other bucket, HTTP
//! origins, paths of one host, and two certificates. Each origin answers with its site's name.

use sluice_fake::sites::{Site, Table};
use sluice_tests::bucket::role::Role;
use sluice_tests::bucket::{Bucket, REGION};
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::purger::Purger;
use sluice_tests::edge::store::Medium;
use sluice_tests::edge::tls::{Certificate, connect_trusting_for, exchange};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;
use tempfile::TempDir;

/// Objects of each bucket.
pub const OBJECTS: [&str; 8] = ["o", "x", "y", "xx", "x/o", "x/y/o", "z/o", "x/x"];
const BUCKETS: usize = 8;

/// A file of sites, which tests extend, and the servers behind the sites.
pub struct World {
    /// The sites in the oracle's form.
    pub table: Table,
    pub certificates: [Certificate; 2],
    pub purger: Purger,
    pub origins: Vec<Origin>,
    pub buckets: Vec<Bucket>,
    text: String,
    environment: Vec<(String, String)>,
    folder: TempDir,
    tls: u16,
}

impl World {
    /// A world with the twenty sites.
    pub async fn twenty() -> Self {
        let mut world = Self::empty();
        for number in 0..BUCKETS {
            let name = format!("b{number}");
            let host = format!("b{number}.test");
            world.add_bucket(&name, &[&host], "").await;
        }
        for number in 0..6 {
            let name = format!("h{number}");
            let host = format!("h{number}.test");
            world.add_http(&name, &[&host], "", "").await;
        }
        world.add_http("root", &["paths.test"], "", "").await;
        world.add_http("below", &["paths.test"], "/x", "").await;
        world
            .add_bucket("bucket-below", &["paths.test"], "/x/y")
            .await;
        world
            .add_http("deep", &["deep.test", "*.deep.test"], "/z", "")
            .await;
        let secure = "  redirect_to_https: true\n  hsts: 365d\n";
        world
            .add_http("s0", &["s0.test"], "", &(world.tls_of(0) + secure))
            .await;
        world
            .add_http("s1", &["s1.test"], "", &world.tls_of(1))
            .await;
        for (index, name) in [(18, "one"), (19, "two")] {
            world.table.sites[index].certificate = Some(name.to_owned());
        }
        assert_eq!(world.table.sites.len(), 20);
        world
    }

    /// A world without sites.
    pub fn empty() -> Self {
        Self {
            table: Table::default(),
            certificates: ["s0.test", "s1.test"].map(Certificate::named),
            purger: Purger::new(),
            origins: Vec::new(),
            buckets: Vec::new(),
            text: "sites:\n".to_owned(),
            environment: Vec::new(),
            folder: TempDir::with_prefix("sluice-sites-").unwrap(),
            tls: free_port(),
        }
    }

    fn tls_of(&self, index: usize) -> String {
        let certificate = &self.certificates[index];
        let (chain, key) = (certificate.cert(), certificate.key());
        let (chain, key) = (chain.display(), key.display());
        format!("  tls: {{certificate: {chain}, key: {key}}}\n")
    }

    /// Adds a site in front of an HTTP origin.
    async fn add_http(&mut self, name: &str, hosts: &[&str], path: &str, fields: &str) {
        let origin = Origin::start().ready().await;
        origin.on("/*", Reply::text(name).max_age(600));
        self.add(name, hosts, path, false);
        self.text += &format!("  origin: {}\n{fields}", origin.url());
        self.origins.push(origin);
    }

    /// Adds a site in front of a bucket, with credentials that open no other bucket.
    pub async fn add_bucket(&mut self, name: &str, hosts: &[&str], path: &str) {
        let bucket = Bucket::new().await;
        for key in OBJECTS {
            bucket.put(key, &[], name.as_bytes()).await;
        }
        let role = Role::reading(&bucket).await;
        self.add(name, hosts, path, true);
        self.stand_before(bucket, name, &role);
    }

    /// Puts the last site in front of `bucket`, with requests signed as `role`.
    fn stand_before(&mut self, bucket: Bucket, name: &str, role: &Role) {
        self.text += &format!(
            "  origin: s3://{}\n  endpoint: {}\n  region: {REGION}\n",
            bucket.name(),
            bucket.endpoint()
        );
        self.sign_as(name, role);
        self.buckets.push(bucket);
    }

    /// Signs the requests of the last site as `role`.
    fn sign_as(&mut self, name: &str, role: &Role) {
        let variable = |what: &str| format!("{}_{what}", name.to_uppercase().replace('-', "_"));
        let [id, secret, token] = ["ID", "SECRET", "SESSION"].map(variable);
        self.text += &format!(
            "  credentials: {{access_key_id: {id}, secret_access_key: {secret}, session_token: {token}}}\n"
        );
        self.environment.extend([
            (id, role.access_key_id.clone()),
            (secret, role.secret_access_key.clone()),
            (token, role.session_token.clone()),
        ]);
    }

    fn add(&mut self, name: &str, hosts: &[&str], path: &str, merges_slashes: bool) {
        let site = Site {
            name: name.to_owned(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            path: path.to_owned(),
            merges_slashes,
            ..Site::default()
        };
        let token = format!("TOKEN_{}", name.to_uppercase().replace('-', "_"));
        self.text += &format!("- name: {name}\n  hosts: {hosts:?}\n  purge_token: {token}\n");
        if !path.is_empty() {
            self.text += &format!("  path: {path}\n");
        }
        self.environment.push((token, site.token()));
        self.table.sites.push(site);
    }

    /// Adds a site in front of a new bucket, with the credentials for the first bucket.
    pub async fn add_thief(&mut self, name: &str, hosts: &[&str]) {
        let role = Role::reading(&self.buckets[0]).await;
        let bucket = Bucket::new().await;
        bucket.put("o", &[], name.as_bytes()).await;
        self.add(name, hosts, "", true);
        self.stand_before(bucket, name, &role);
    }

    /// Starts an edge with these sites.
    pub async fn start(&self) -> Edge {
        let path = self.folder.path().join("sites.yaml");
        std::fs::write(&path, &self.text).unwrap();
        let mut edge = Builder::new()
            .medium(Medium::Memory)
            .env("SLUICE_SITES", path.to_str().unwrap())
            .env("SLUICE_ACCESS_LOG", "json")
            .metrics();
        if self.text.contains("tls:") {
            edge = edge.env("SLUICE_EDGE_TLS_PORT", self.tls.to_string());
        }
        for (name, value) in &self.environment {
            edge = edge.env(name, value);
        }
        self.purger.open(edge).start().await
    }

    /// Address of the listener for TLS.
    pub const fn secure_address(&self) -> SocketAddr {
        loopback(self.tls)
    }

    /// Sends a GET over cleartext, or over TLS with this server name.
    pub async fn ask(
        &self,
        edge: &Edge,
        server_name: Option<&str>,
        host: &str,
        path: &str,
    ) -> (u16, String) {
        let asked = request("GET", path, &[("host", host)]);
        let Some(name) = server_name else {
            let response: Response = Client::connect(edge.address()).await.exchange(asked).await;
            return (
                response.status,
                String::from_utf8_lossy(&response.body).into_owned(),
            );
        };
        let stream = connect_trusting_for(self.secure_address(), name).await;
        let (head, body) = exchange(&mut stream.unwrap(), &asked).await.unwrap();
        let status = head.word(1).parse().unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}
