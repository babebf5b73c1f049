// SPDX-License-Identifier: Apache-2.0
//! Pages as web frameworks send them according to their documentation. Under the default policy for an HTTP origin,
//! pages for all visitors are stored, and pages for one visitor are not stored, with the reason in `Cache-Status`.

use sluice_tests::client::crowd::Crowd;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use test_case::test_case;

type Headers = &'static [(&'static str, &'static str)];

/// vercel/next.js#65335: the names that Next.js 15 sends with each page of the App Router.
const OF_NEXT: &str = "RSC, Next-Router-State-Tree, Next-Router-Prefetch, Next-Router-Segment-Prefetch, Accept-Encoding";

const FOR_ALL: [(&str, Headers); 9] = [
    (
        "next",
        &[
            ("vary", OF_NEXT),
            (
                "cache-control",
                "s-maxage=60, stale-while-revalidate=31535940",
            ),
            ("x-nextjs-cache", "HIT"),
        ],
    ),
    (
        "next-forever",
        &[
            ("vary", OF_NEXT),
            ("cache-control", "s-maxage=31536000, stale-while-revalidate"),
        ],
    ),
    (
        "nuxt-swr",
        &[
            ("cache-control", "s-maxage=60, stale-while-revalidate"),
            ("etag", "W/\"abc\""),
            ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ],
    ),
    (
        "rails-expires-in",
        &[
            ("cache-control", "max-age=60, public"),
            ("etag", "W/\"abc\""),
            ("vary", "Accept, Accept-Encoding"),
        ],
    ),
    (
        "drupal",
        &[
            ("cache-control", "max-age=900, public"),
            ("expires", "Sun, 19 Nov 1978 05:00:00 GMT"),
            ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("etag", "\"784111777\""),
            ("vary", "Cookie"),
            ("x-generator", "Drupal 11 (https://www.drupal.org)"),
        ],
    ),
    (
        "wordpress-with-a-cache-plugin",
        &[
            ("vary", "Accept-Encoding, Cookie"),
            ("cache-control", "max-age=60, must-revalidate"),
            (
                "link",
                "<https://example.test/wp-json/>; rel=\"https://api.w.org/\"",
            ),
        ],
    ),
    (
        "sveltekit",
        &[
            ("cache-control", "max-age=60"),
            ("vary", "Accept"),
            ("x-sveltekit-page", "true"),
        ],
    ),
    // symfony/symfony#11664.
    (
        "symfony-with-edge-side-includes",
        &[
            ("cache-control", "public, s-maxage=600"),
            ("surrogate-control", "content=\"ESI/1.0\""),
        ],
    ),
    (
        "assets-of-each",
        &[
            ("cache-control", "public, max-age=31536000, immutable"),
            ("vary", "Accept-Encoding"),
        ],
    ),
];

const FOR_ONE: [(&str, Headers, &str); 5] = [
    (
        "next-dynamic",
        &[
            ("vary", OF_NEXT),
            (
                "cache-control",
                "private, no-cache, no-store, max-age=0, must-revalidate",
            ),
        ],
        "no-store",
    ),
    (
        "rails",
        &[
            ("cache-control", "max-age=0, private, must-revalidate"),
            ("etag", "W/\"abc\""),
            ("vary", "Accept"),
        ],
        "private",
    ),
    (
        "wordpress-for-a-user",
        &[
            ("expires", "Wed, 11 Jan 1984 05:00:00 GMT"),
            (
                "cache-control",
                "no-cache, must-revalidate, max-age=0, no-store, private",
            ),
        ],
        "no-store",
    ),
    (
        "drupal-with-a-session",
        &[
            ("cache-control", "must-revalidate, no-cache, private"),
            ("set-cookie", "SESS1=x; HttpOnly"),
        ],
        "set-cookie",
    ),
    ("wordpress", &[("x-pingback", "/xmlrpc.php")], "no-lifetime"),
];

fn page(headers: Headers) -> Reply {
    let page = Reply::ok(1_000).header("content-type", "text/html");
    let with = |page: Reply, (name, value): &(&str, &str)| page.header(name, value);
    headers.iter().fold(page, with)
}

#[tokio::test]
async fn pages_for_all_are_stored_and_those_for_one_say_why_not() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(1).origin_decides();
    let edge = edge.start().await;
    for (name, headers) in FOR_ALL {
        let path = format!("/{name}");
        origin.on(&path, page(headers));
        eventually(name, async || edge.get(&path).await.is_hit()).await;
        assert!(origin.count(&path) <= 2, "{name}");
    }
    for (name, headers, reason) in FOR_ONE {
        let path = format!("/{name}");
        origin.on(&path, page(headers));
        let response = edge.get(&path).await;
        let said = response.cache_status();
        assert!(
            said.ends_with(&format!("; detail={reason}")),
            "{name}: {said}"
        );
    }
}

/// nearai/openclaw-nearai-worker#57, theopenconversationkit/tock#1895: the second client of a stream.
#[test_case("text/event-stream", None; "events")]
#[test_case("text/event-stream; charset=utf-8", Some("no-cache"); "events with a validator")]
#[test_case("application/x-ndjson", None; "lines of json")]
#[test_case("multipart/x-mixed-replace; boundary=frame", None; "pictures")]
#[tokio::test]
async fn no_client_of_a_stream_waits_for_another(media_type: &str, control: Option<&str>) {
    // Under this policy no client stops waiting before the test ends.
    const POLICY: &str = "origin: {kind: http}\ncoalesce: {lease: 600s, max_wait: 600s}\n";
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let stream = Reply::ok(1_000).chunked();
    let stream = stream.header("content-type", media_type);
    let stream = control.into_iter().fold(stream, |stream, control| {
        stream.header("cache-control", control).etag("a")
    });
    origin.on("/a", stream.hold_after(200, &gate));
    let edge = Edge::http(&origin).policy(POLICY);
    let edge = edge.workers(2).start().await;
    let crowd = Crowd::connect(edge.address(), 6).await.fire("/a");
    gate.wait_reached(6).await;
    let late = Crowd::connect(edge.address(), 2).await.fire("/a");
    gate.wait_reached(8).await;
    gate.open();
    crowd.land().await.all(200);
    late.land().await.all(200);
}

/// Each client chooses the value of a header in `Vary`. One URL does not fill the cache.
#[tokio::test]
async fn a_url_keeps_a_bounded_number_of_variants_the_oldest_goes_first() {
    const MOST: usize = 5;
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(1_000).max_age(600);
    origin.on("/a", reply.header("vary", "Accept-Language"));
    let policy = format!("origin: {{kind: http}}\nlimits: {{variants_per_url: {MOST}}}\n");
    let edge = Edge::http(&origin)
        .policy(&policy)
        .env("SLUICE_HOT_BYTES", "0")
        .workers(1);
    let edge = edge.start().await;
    let of = async |n: usize| {
        let language = format!("x-{n}");
        edge.send("GET", "/a", &[("accept-language", &language)])
            .await
    };
    for n in 0..20 {
        eventually("a hit", async || of(n).await.is_hit()).await;
    }
    // The first variant is stored under the plain key.
    let entries = edge.folder().join("cache").join("entries");
    eventually("the oldest ones to be gone", async || {
        std::fs::read_dir(&entries).unwrap().count() == 1 + MOST
    })
    .await;
    for n in 20 - MOST..20 {
        assert!(of(n).await.is_hit(), "{n}");
    }
    assert!(!of(5).await.is_hit());
}
