// SPDX-License-Identifier: Apache-2.0
//! The contents of the cache, and the log of purges, by one command each.

use super::shop::Shop;
use serde_json::{Value, json};
use sluice_tests::edge::purger::Purger;
use sluice_tests::eventually;

#[tokio::test]
async fn what_fills_the_cache() {
    let shop = Shop::start(|edge| edge).await;
    for path in ["/img/1.png", "/img/2.png", "/a"] {
        assert_eq!(shop.get("assets", path).await, 200);
    }
    let objects = async |arguments: &[&str], name: &str| -> Option<u64> {
        let arguments = [&["du", "--json"], arguments].concat();
        let told = shop.edge.command(&arguments).await.json();
        let mut groups = told["groups"].as_array().unwrap().iter();
        let group = groups.find(|group| group["name"] == name || group["site"] == name)?;
        assert!(
            group["bytes"].as_u64() > group["objects"].as_u64(),
            "{told:#}"
        );
        group["objects"].as_u64()
    };
    eventually("three stored objects", async || {
        objects(&["--by", "site"], "assets").await == Some(3)
    })
    .await;
    let by_prefix = ["--by", "prefix", "--site", "assets"];
    assert_eq!(objects(&by_prefix, "assets.test/img/").await, Some(2));
    assert_eq!(objects(&by_prefix, "assets.test/").await, Some(1));
    assert_eq!(
        objects(&["--by", "site", "--site", "shop"], "assets").await,
        None
    );
    let told = shop.edge.command(&["du"]).await;
    assert!(told.text.contains("3 objects, "), "{told:?}");
}

#[tokio::test]
async fn which_purges_there_were_and_by_which_callers() {
    let purger = Purger::new();
    let shop = Shop::start(|edge| purger.open(edge)).await;
    let order = json!({"prefix": "http://assets.test/img/", "soft": true});
    purger.purge(order).await;
    let arguments = ["purge", "--url", "http://assets.test/a?token=secret"];
    assert_eq!(shop.edge.command(&arguments).await.code, Some(0));
    let purges = async || {
        let told = shop.edge.command(&["purges", "--json"]).await.json();
        told["purges"].as_array().unwrap().clone()
    };
    eventually("two purges", async || purges().await.len() == 2).await;
    let of = |purge: &Value| {
        let text = |field: &str| purge[field].as_str().unwrap_or_default().to_owned();
        (
            text("caller"),
            purge["soft"].clone(),
            purge["status"].clone(),
        )
    };
    let purges = purges().await;
    assert_eq!(of(&purges[0]), ("edge".into(), true.into(), 200.into()));
    assert_eq!(
        of(&purges[1]),
        ("control socket".into(), false.into(), 200.into())
    );
    assert!(purges[0]["number"].as_u64() < purges[1]["number"].as_u64());
    let told = shop.edge.command(&["purges"]).await.text;
    assert!(told.contains("prefix http://assets.test/img/"), "{told}");
    assert!(told.contains("/a?…") && !told.contains("secret"), "{told}");
    let told = shop.edge.command(&["purges", "--query"]).await.text;
    assert!(told.contains("token=secret"), "{told}");
    // A refused call is in the log of events only.
    assert_eq!(purger.call(&json!({})).await.status, 400);
    assert_eq!(shop.edge.command(&["purges"]).await.text.lines().count(), 3);
}
