// SPDX-License-Identifier: Apache-2.0
//! Credentials that grant access to one bucket, or to a part of its objects.

use super::{Bucket, REGION};
use crate::client::{Client, request};
use ring::digest::{SHA256, digest};
use ring::hmac::{self, HMAC_SHA256};
use serde_json::{Value, json};

/// The credentials with which a client signs requests.
#[derive(Clone, Debug)]
pub struct Role {
    /// The ID of the access key.
    pub access_key_id: String,
    /// The secret.
    pub secret_access_key: String,
    /// The token of the session; empty for credentials that are not temporary.
    pub session_token: String,
}

impl Role {
    /// Credentials that may read the objects of that bucket, and list it.
    pub async fn reading(bucket: &Bucket) -> Self {
        let arn = format!("arn:aws:s3:::{}", bucket.name());
        let list = json!({"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": [arn]});
        Self::assume(bucket, &[get_objects(bucket), list]).await
    }

    /// Credentials that may read the objects of that bucket, but not list it.
    pub async fn not_listing(bucket: &Bucket) -> Self {
        Self::assume(bucket, &[get_objects(bucket)]).await
    }

    /// `AssumeRole` of AWS STS.
    ///
    /// # Panics
    /// When MinIO refuses.
    async fn assume(bucket: &Bucket, statements: &[Value]) -> Self {
        let minio = bucket.server();
        let policy = json!({"Version": "2012-10-17", "Statement": statements});
        let body = format!(
            "Action=AssumeRole&Version=2011-06-15&DurationSeconds=3600&Policy={}",
            form_encoded(&policy.to_string())
        );
        let host = minio.address().to_string();
        let date = jiff::Timestamp::now()
            .strftime("%Y%m%dT%H%M%SZ")
            .to_string();
        let authorization = authorization(
            minio.access_key.as_str(),
            &minio.secret_key,
            &host,
            &date,
            &body,
        );
        let length = body.len().to_string();
        let headers = [
            ("host", host.as_str()),
            ("x-amz-date", &date),
            ("authorization", &authorization),
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-length", &length),
        ];
        let mut bytes = request("POST", "/", &headers);
        bytes.extend(body.as_bytes());
        let response = Client::connect(minio.address()).await.exchange(bytes).await;
        assert_eq!(response.status, 200, "{response}");
        let text = String::from_utf8_lossy(&response.body).into_owned();
        let element = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>")).unwrap();
            rest.split('<').next().unwrap().to_owned()
        };
        Self {
            access_key_id: element("AccessKeyId"),
            secret_access_key: element("SecretAccessKey"),
            session_token: element("SessionToken"),
        }
    }
}

fn get_objects(bucket: &Bucket) -> Value {
    let objects = format!("arn:aws:s3:::{}/*", bucket.name());
    json!({"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": [objects]})
}

/// Signature of a form that is posted to STS (AWS Signature Version 4).
fn authorization(access_key: &str, secret_key: &str, host: &str, date: &str, body: &str) -> String {
    let signed = "host;x-amz-date";
    let asked = format!(
        "POST\n/\n\nhost:{host}\nx-amz-date:{date}\n\n{signed}\n{}",
        hash(body)
    );
    let day = &date[..8];
    let scope = format!("{day}/{REGION}/sts/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hash(&asked));
    let first = format!("AWS4{secret_key}").into_bytes();
    let parts = [day, REGION, "sts", "aws4_request", &text];
    let signature = parts.iter().fold(first, |key, part| {
        let key = hmac::Key::new(HMAC_SHA256, &key);
        hmac::sign(&key, part.as_bytes()).as_ref().to_vec()
    });
    format!(
        "AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={signed}, Signature={}",
        hexadecimal(&signature)
    )
}

fn hash(text: &str) -> String {
    hexadecimal(digest(&SHA256, text.as_bytes()).as_ref())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text as the value of a form's field.
fn form_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
