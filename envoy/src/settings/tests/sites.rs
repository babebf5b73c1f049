// SPDX-License-Identifier: Apache-2.0
//! Topics of Amazon SNS, and the file of sites.

use super::*;

const TOPICS: &str =
    "arn:aws:sns:eu-central-1:123456789012:a, arn:aws-cn:sns:cn-north-1:123456789012:b";

#[test]
fn messages_of_sns_are_taken_from_the_topics_that_are_listed() {
    let bucket = ("SLUICE_ORIGIN", "s3://site");
    assert_eq!(read(&[bucket]).unwrap().sns, None);
    let variables = [
        bucket,
        ("SLUICE_SNS_TOPICS", TOPICS),
        ("SLUICE_SNS_PROXY", "http://proxy:3128"),
    ];
    let settings = read(&variables).unwrap();
    let sns = settings.sns.as_ref().unwrap();
    let topics: Vec<_> = sns.topics.iter().map(|topic| topic.arn.as_str()).collect();
    assert_eq!(topics.join(", "), TOPICS);
    let proxy = sns.proxy.as_ref().map(ToString::to_string);
    assert_eq!(proxy.as_deref(), Some("http://proxy:3128"));
    assert!(settings.takes_purges() && settings.purge.token.is_none());
}

#[test]
fn settings_for_sns_that_make_no_sense_are_refused() {
    let topics = (
        "SLUICE_SNS_TOPICS",
        "arn:aws:sns:eu-central-1:123456789012:a",
    );
    for (variables, expected) in [
        (
            &[(
                "SLUICE_SNS_TOPICS",
                "arn:aws:sns:eu-central-1:123456789012:a.fifo",
            )][..],
            "SLUICE_SNS_TOPICS=\"arn:aws:sns:eu-central-1:123456789012:a.fifo\": expected names of standard topics",
        ),
        (
            &[("SLUICE_SNS_TOPICS", ",")],
            "SLUICE_SNS_TOPICS=\",\": expected names",
        ),
        (
            &[topics, ("SLUICE_SNS_PROXY", "https://proxy")],
            "SLUICE_SNS_PROXY=\"https://proxy\": expected http://HOST[:PORT]",
        ),
        (
            &[("SLUICE_SNS_PROXY", "http://proxy")],
            "SLUICE_SNS_PROXY: must be unset, or SLUICE_SNS_TOPICS be set",
        ),
        (
            &[topics, ("SLUICE_ORIGIN", "http://a.test")],
            "SLUICE_ORIGIN=\"http://a.test\": expected s3://BUCKET[/PREFIX], or SLUICE_SNS_TOPICS to be unset",
        ),
        (
            &[("SLUICE_PURGE_FEED_WRITE", "on")],
            "SLUICE_PURGE_FEED_WRITE=\"on\": expected off, or SLUICE_PURGE_TOKEN or SLUICE_SNS_TOPICS to be set",
        ),
        (
            &[topics, ("SLUICE_PURGE_PORT", "8080")],
            "SLUICE_PURGE_PORT=\"8080\": expected another port than SLUICE_EDGE_PORT's",
        ),
    ] {
        let problems = problems(variables);
        assert!(
            problems.len() == 1 && problems[0].starts_with(expected),
            "{problems:?}"
        );
    }
}

#[test]
fn a_file_of_sites_takes_the_place_of_the_settings_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sites.yaml");
    let text = "sites:\n- {name: a, origin: 's3://site', purge_token: TOKEN}\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let token = ("TOKEN", "correct-horse-battery");
    let settings = read(&[("SLUICE_SITES", file), token, ("AWS_REGION", "eu-west-1")]).unwrap();
    assert!(settings.origin.is_none() && settings.tls_port.is_none() && settings.takes_purges());
    let sites = settings.sites.unwrap();
    assert!(sites.sites[0].origin.to_string().contains("eu-west-1"));
    for name in [
        "SLUICE_ORIGIN",
        "SLUICE_S3_ENDPOINT",
        "SLUICE_S3_ADDRESSING",
        "SLUICE_POLICY",
        "SLUICE_ACCESS",
        "SLUICE_TLS_CERT",
        "SLUICE_TLS_KEY",
        "SLUICE_REDIRECT_TO_HTTPS",
        "SLUICE_HSTS",
    ] {
        let problems = problems(&[("SLUICE_SITES", file), token, (name, "x")]);
        let expected = format!("{name}: must be unset beside SLUICE_SITES: ");
        assert!(
            problems.len() == 1 && problems[0].starts_with(&expected),
            "{problems:?}"
        );
    }
    let needs = "SLUICE_EDGE_TLS_PORT: needs tls in a site of SLUICE_SITES";
    assert_eq!(
        problems(&[
            ("SLUICE_SITES", file),
            token,
            ("SLUICE_EDGE_TLS_PORT", "8443")
        ]),
        [needs]
    );
    let twice = problems(&[("SLUICE_SITES", file), token, ("SLUICE_PURGE_PORT", "8080")]);
    assert!(
        twice[0].starts_with("SLUICE_PURGE_PORT=\"8080\": expected another port"),
        "{twice:?}"
    );
    let problems = problems(&[("SLUICE_SITES", file), ("SLUICE_CACHE", "ram")]);
    assert!(
        problems[0].starts_with(&format!("{file}:2: sites[0].purge_token: ")),
        "{problems:?}"
    );
    assert!(problems[1].starts_with("SLUICE_CACHE="), "{problems:?}");
}
