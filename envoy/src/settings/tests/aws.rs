// SPDX-License-Identifier: Apache-2.0
//! The variables of AWS's own programs.

use super::*;

fn endpoint(variables: &[(&str, &str)]) -> String {
    let settings = read(variables).unwrap();
    settings.origin.unwrap().endpoint().to_string()
}

const BUCKET: (&str, &str) = ("SLUICE_ORIGIN", "s3://site");

#[test]
fn the_address_of_the_s3_server_may_have_the_names_of_aws() {
    let own = ("SLUICE_S3_ENDPOINT", "http://own:9000");
    let of_s3 = ("AWS_ENDPOINT_URL_S3", "http://s3:9000");
    let of_all = ("AWS_ENDPOINT_URL", "http://all:9000");
    assert_eq!(endpoint(&[BUCKET, of_all]), "http://all:9000");
    assert_eq!(endpoint(&[BUCKET, of_all, of_s3]), "http://s3:9000");
    assert_eq!(endpoint(&[BUCKET, of_all, of_s3, own]), "http://own:9000");
    let http = ("SLUICE_ORIGIN", "http://origin");
    assert_eq!(endpoint(&[http, of_all, of_s3]), "http://origin");
    let wrong = problems(&[BUCKET, ("AWS_ENDPOINT_URL_S3", "s3")]);
    assert!(
        wrong[0].starts_with("AWS_ENDPOINT_URL_S3=\"s3\": expected http://HOST"),
        "{wrong:?}"
    );
}

#[test]
fn sites_without_an_endpoint_use_that_of_aws() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sites.yaml");
    let text = "sites:\n- {name: a, hosts: [a.test], origin: 's3://site'}\n\
                - {name: b, origin: 's3://site', endpoint: 'http://b:9000'}\n";
    std::fs::write(&file, text).unwrap();
    let file = ("SLUICE_SITES", file.to_str().unwrap());
    let settings = read(&[file, ("AWS_ENDPOINT_URL", "http://all:9000")]).unwrap();
    let sites = settings.sites.unwrap().sites;
    let endpoints = sites.iter().map(|site| site.origin.endpoint().to_string());
    assert_eq!(
        endpoints.collect::<Vec<_>>(),
        ["http://all:9000", "http://b:9000"]
    );
}

#[test]
fn the_region_may_be_the_default_region() {
    let default = ("AWS_DEFAULT_REGION", "eu-west-1");
    let other = ("AWS_REGION", "eu-north-1");
    assert!(endpoint(&[BUCKET, default]).contains("eu-west-1"));
    assert!(endpoint(&[BUCKET, default, other]).contains("eu-north-1"));
    let wrong = problems(&[("AWS_DEFAULT_REGION", "eu west")]);
    assert!(
        wrong[0].starts_with("AWS_DEFAULT_REGION=\"eu west\": expected a region"),
        "{wrong:?}"
    );
}

#[test]
fn a_profile_has_the_key_unless_a_key_is_set() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".aws/credentials");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let keys = "aws_access_key_id = k\naws_secret_access_key = hush\n";
    std::fs::write(&path, format!("[default]\n{keys}[assets]\n{keys}")).unwrap();
    let home = ("HOME", home.path().to_str().unwrap());
    let file = ("AWS_SHARED_CREDENTIALS_FILE", path.to_str().unwrap());
    let profile = ("AWS_PROFILE", "assets");
    let of_profile = |profile: &str| Credentials::File {
        path: path.clone(),
        profile: profile.into(),
    };
    for (variables, expected) in [
        (&[BUCKET, home][..], Credentials::Chain),
        (&[BUCKET, home, profile], of_profile("assets")),
        (&[BUCKET, file], of_profile("default")),
        (&[BUCKET, file, profile], of_profile("assets")),
        (
            &[("SLUICE_ORIGIN", "http://origin"), profile],
            Credentials::Chain,
        ),
    ] {
        assert_eq!(
            read(variables).unwrap().credentials,
            expected,
            "{variables:?}"
        );
    }
    let key = [
        BUCKET,
        file,
        ("AWS_ACCESS_KEY_ID", "k"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
    ];
    assert_eq!(
        read(&key).unwrap().credentials,
        credentials::environment(false)
    );
    let other = ("AWS_PROFILE", "other");
    let shown = path.display();
    for (variables, expected) in [
        (
            &[BUCKET, home, other][..],
            format!("AWS_PROFILE=\"other\": expected {shown} to be a file with the profile other"),
        ),
        (
            &[BUCKET, file, other],
            format!(
                "AWS_SHARED_CREDENTIALS_FILE=\"{shown}\": expected a file with the profile other"
            ),
        ),
        (
            &[BUCKET, other],
            "AWS_SHARED_CREDENTIALS_FILE: must be set beside AWS_PROFILE, or HOME be set".into(),
        ),
    ] {
        let problems = problems(variables);
        assert!(
            problems.len() == 1 && problems[0].starts_with(&expected),
            "{problems:?}"
        );
    }
}

#[test]
fn the_ca_certificates_of_aws_are_for_buckets_only() {
    let files = tempfile::tempdir().unwrap();
    let [all, aws] = ["all", "aws"].map(|name| files.path().join(name));
    std::fs::write(&all, "").unwrap();
    std::fs::write(&aws, "").unwrap();
    let of_all = ("SSL_CERT_FILE", all.to_str().unwrap());
    let of_aws = ("AWS_CA_BUNDLE", aws.to_str().unwrap());
    let files = |variables: &[(&str, &str)]| {
        let settings = read(variables).unwrap();
        (settings.ca_file, settings.aws_ca_file)
    };
    assert_eq!(files(&[of_all]), (Some(all.clone()), Some(all.clone())));
    assert_eq!(files(&[of_aws]), (None, Some(aws.clone())));
    assert_eq!(files(&[of_all, of_aws]), (Some(all), Some(aws)));
}
