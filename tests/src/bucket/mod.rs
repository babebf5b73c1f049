// SPDX-License-Identifier: Apache-2.0
//! Private buckets of real S3 servers, behind a proxy that counts.

pub mod minio;
pub mod proxy;
pub mod role;
pub mod server;
pub mod software;
pub mod versitygw;

use crate::bucket::proxy::Proxy;
use crate::bucket::server::S3Server;
use crate::client::Response;
use crate::eventually;
use crate::http::body;
use crate::server::requests::Requests;
use rusty_s3::S3Action as _;
use rusty_s3::actions::CreateMultipartUpload;
use std::time::Duration;

/// The region that the servers sign for.
pub const REGION: &str = "us-east-1";

/// A private bucket, reached through a proxy that counts.
pub struct Bucket {
    server: &'static S3Server,
    name: String,
    proxy: Proxy,
}

impl Bucket {
    /// A new private bucket in the shared MinIO.
    pub async fn new() -> Self {
        minio::shared().await.bucket().await
    }

    /// Makes MinIO send events of all changes in the bucket to the edge, see [`minio::notifying`].
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn notify(&self) {
        let signer = self.server.signer(&self.name);
        let credentials = self.server.credentials();
        let mut action = signer.create_bucket(&credentials);
        action.query_mut().insert("notification", "");
        let url = action.sign(Duration::from_secs(600));
        let configuration = "<NotificationConfiguration><QueueConfiguration>\
             <Event>s3:ObjectCreated:*</Event><Event>s3:ObjectRemoved:*</Event>\
             <Queue>arn:minio:sqs::EDGE:webhook</Queue>\
             </QueueConfiguration></NotificationConfiguration>";
        // MinIO reports that it is healthy before it has loaded its targets for events.
        eventually("MinIO takes the edge as a target", async || {
            let body = configuration.as_bytes();
            let response = self.server.call("PUT", url.as_str(), &[], body).await;
            assert!(matches!(response.status, 200 | 400), "{response}");
            response.status == 200
        })
        .await;
    }

    /// Lets everyone read its objects.
    pub async fn publish(&self) {
        self.let_read("*").await;
    }

    /// Lets the user with this access key read its objects, or everyone with `*`.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn let_read(&self, principal: &str) {
        let signer = self.server.signer(&self.name);
        let credentials = self.server.credentials();
        let mut action = signer.create_bucket(&credentials);
        action.query_mut().insert("policy", "");
        let url = action.sign(Duration::from_secs(600));
        let policy = serde_json::json!({
            "Version": "2012-10-17",
            "Statement": [{
                "Effect": "Allow", "Principal": {"AWS": [principal]}, "Action": ["s3:GetObject"],
                "Resource": [format!("arn:aws:s3:::{}/*", self.name)],
            }],
        });
        let content = policy.to_string();
        let response = self
            .server
            .call("PUT", url.as_str(), &[], content.as_bytes());
        let response = response.await;
        assert!(matches!(response.status, 200 | 204), "{response}");
    }

    /// Name of the bucket.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server of the bucket.
    #[must_use]
    pub const fn server(&self) -> &'static S3Server {
        self.server
    }

    /// The endpoint of the proxy that counts requests: `http://HOST:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.proxy.address())
    }

    /// The proxy, with which a test holds requests.
    #[must_use]
    pub const fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// The requests that passed the proxy.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        self.proxy.requests()
    }

    /// Number of requests for the object `key`, as S3 encodes it.
    #[must_use]
    pub fn count(&self, key: &str) -> usize {
        self.requests().count(&self.target(key))
    }

    /// The target of an object: `/BUCKET/KEY`.
    #[must_use]
    pub fn target(&self, key: &str) -> String {
        format!("/{}/{key}", self.name)
    }

    /// Stores an object.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn put(&self, key: &str, headers: &[(&str, &str)], content: &[u8]) {
        let response = self.try_put(key, headers, content).await;
        assert_eq!(response.status, 200, "{key}: {response}");
    }

    /// Asks the server to store an object, which it may refuse.
    pub async fn try_put(&self, key: &str, headers: &[(&str, &str)], content: &[u8]) -> Response {
        let signer = self.server.signer(&self.name);
        let credentials = self.server.credentials();
        let mut action = signer.put_object(Some(&credentials), key);
        // S3 accepts its own headers only if they are signed.
        for (name, value) in headers
            .iter()
            .filter(|(name, _)| name.starts_with("x-amz-"))
        {
            action
                .headers_mut()
                .insert((*name).to_owned(), (*value).to_owned());
        }
        let url = action.sign(Duration::from_secs(600));
        let url = url.as_str();
        self.server.call("PUT", url, headers, content).await
    }

    /// Stores an object in two parts, the first of them as small as S3 allows (5 MiB), and returns its content.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn put_in_parts(&self, key: &str) -> Vec<u8> {
        const VALIDITY: Duration = Duration::from_secs(600);
        let signer = self.server.signer(&self.name);
        let credentials = self.server.credentials();
        let url = signer
            .create_multipart_upload(Some(&credentials), key)
            .sign(VALIDITY);
        let begun = self.server.call("POST", url.as_str(), &[], b"").await;
        assert_eq!(begun.status, 200, "{key}: {begun}");
        let begun = String::from_utf8_lossy(&begun.body).into_owned();
        let begun = CreateMultipartUpload::parse_response(&begun).unwrap();
        let parts = [vec![b'a'; 5 << 20], vec![b'b'; 1000]];
        let mut tags = Vec::new();
        for (number, part) in (1..).zip(&parts) {
            let upload = signer.upload_part(Some(&credentials), key, number, begun.upload_id());
            let stored = self
                .server
                .call("PUT", upload.sign(VALIDITY).as_str(), &[], part)
                .await;
            assert_eq!(stored.status, 200, "{key}: {stored}");
            tags.push(stored.header("etag").to_owned());
        }
        let complete = signer.complete_multipart_upload(
            Some(&credentials),
            key,
            begun.upload_id(),
            tags.iter().map(String::as_str),
        );
        let url = complete.sign(VALIDITY);
        let body = complete.body();
        let done = self
            .server
            .call("POST", url.as_str(), &[], body.as_bytes())
            .await;
        assert_eq!(done.status, 200, "{key}: {done}");
        parts.concat()
    }

    /// Stores a stamped body of `size` bytes; `version` is its sequence number, and the stamp's path is `/KEY`.
    pub async fn put_stamped(&self, key: &str, version: u64, size: usize) {
        self.put(key, &[], &body::make(&format!("/{key}"), version, size))
            .await;
    }

    /// Sends a GET for an object to the server itself, with the owner's signature.
    pub async fn get(&self, key: &str) -> Response {
        let signer = self.server.signer(&self.name);
        let credentials = self.server.credentials();
        let url = signer
            .get_object(Some(&credentials), key)
            .sign(Duration::from_secs(600));
        self.server.call("GET", url.as_str(), &[], b"").await
    }

    /// Deletes an object.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn delete(&self, key: &str) {
        let signer = self.server.signer(&self.name);
        let credentials = self.server.credentials();
        let url = signer
            .delete_object(Some(&credentials), key)
            .sign(Duration::from_secs(600));
        let response = self.server.call("DELETE", url.as_str(), &[], b"").await;
        assert_eq!(response.status, 204, "{key}: {response}");
    }

    /// Waits until `count` requests for the object have arrived.
    pub async fn wait_for_requests(&self, key: &str, count: usize) {
        eventually(&format!("{count} requests for {key}"), async || {
            self.count(key) >= count
        })
        .await;
    }
}
