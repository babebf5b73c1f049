// SPDX-License-Identifier: Apache-2.0
//! A gateway verifies links that expire, with the key that `sluice seal` has sealed for it.

use serde_json::json;
use sluice::seal::Seal;
use sluice_core::access::grant::{Grant, GrantedResource};
use sluice_core::access::signing_key::SigningKey;
use sluice_core::hexadecimal;
use sluice_tests::eventually;
use sluice_tests::mesh::gateway::Gateway;
use sluice_tests::mesh::kustomize::changed_policy;
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const NAMESPACE: &str = "signatures";
const KEY: &str = "a key of at least thirty-two bytes";

/// The key in the form for the policy, with the secret of the gateway's Secret `sluice-cache`.
fn sealed(gateway: &Gateway, folder: &TempDir) -> String {
    let template = "go-template={{.data.secret | base64decode}}";
    let get = [
        "--namespace",
        NAMESPACE,
        "get",
        "secret",
        "sluice-cache",
        "-o",
        template,
    ];
    let files = [
        ("key", KEY.to_owned()),
        ("secret", gateway.mesh().cluster.kubectl(&get, "")),
    ];
    let [key, secret] = files.map(|(name, text)| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    });
    let seal = Seal {
        name: "a".to_owned(),
        key,
        secret,
    };
    seal.sealed().unwrap().to_string()
}

/// The target with a signature until this time.
fn link(path: &str, expires: u64) -> String {
    let grant = Grant {
        method: "GET",
        host: "edge.test",
        resource: GrantedResource::Url(path),
        not_before: None,
        expires,
        from: None,
        key: "a",
    };
    let mut link = format!("{path}?sluice-key=a&sluice-expires={expires}&sluice-signature=");
    let key = SigningKey::new(KEY.as_bytes()).unwrap();
    hexadecimal::push(&mut link, &key.sign(&grant));
    link
}

#[tokio::test]
async fn a_gateway_with_a_sealed_key_answers_the_bearer_of_a_link_and_no_other_client() {
    let gateway = Gateway::builder(NAMESPACE).await.start().await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    // Control: without the rule anyone reads the object.
    let _ = gateway.get("/a.bin").await.stamp("/a.bin");
    let folder = TempDir::new().unwrap();
    let sealed = sealed(&gateway, &folder);
    let policy = changed_policy("base", |policy| {
        policy["access"] = json!({"any_of": [{"signed": {"keys": {"a": {"sealed": sealed}}}}]});
    });
    gateway.apply(&gateway.overlay.clone().policy(&policy).build());
    // Each worker applies the policy a moment later.
    for _ in 0..8 {
        eventually("the refusal", async || {
            gateway.get("/a.bin").await.status == 403
        })
        .await;
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let _ = gateway
        .get(&link("/a.bin", now + 600))
        .await
        .stamp("/a.bin");
    for refused in [
        link("/a.bin", now - 600),
        link("/b.bin", now + 600).replace("/b.bin", "/a.bin"),
    ] {
        assert_eq!(gateway.get(&refused).await.status, 403, "{refused}");
    }
    assert_eq!(gateway.fetches("a.bin"), 1);
}
