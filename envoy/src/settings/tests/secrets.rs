// SPDX-License-Identifier: Apache-2.0
//! Secrets in files.

use super::*;

/// A folder with a file of this name and text; the folder, and the path of the file.
fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

const TOKEN: &str = "hush-hush-hush-hush";

#[test]
fn a_secret_may_be_in_a_file_that_ends_with_a_line_end() {
    let expected = read(&[("SLUICE_PURGE_TOKEN", TOKEN)]).unwrap().purge.token;
    assert!(expected.is_some());
    for end in ["", "\n", "\r\n"] {
        let (_folder, path) = file("token", &format!("{TOKEN}{end}"));
        for variable in ["SLUICE_PURGE_TOKEN_FILE", "PURGE_TOKEN_FILE"] {
            let settings = read(&[(variable, &path)]).unwrap();
            assert_eq!(settings.purge.token, expected, "{variable} {end:?}");
        }
    }
}

#[test]
fn systemd_gives_a_secret_in_its_folder_of_credentials() {
    let expected = read(&[("SLUICE_PURGE_TOKEN", TOKEN)]).unwrap().purge.token;
    let (folder, _) = file("SLUICE_PURGE_TOKEN", TOKEN);
    let folder = folder.path().to_str().unwrap();
    let settings = read(&[("CREDENTIALS_DIRECTORY", folder)]).unwrap();
    assert_eq!(settings.purge.token, expected);
}

#[test]
fn envoy_gets_the_key_that_is_in_files() {
    let (_folder, path) = file("key", "hush\n");
    let settings = read(&[
        ("SLUICE_ORIGIN", "s3://site"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY_FILE", &path),
    ]);
    let settings = settings.unwrap();
    assert_eq!(settings.credentials, credentials::environment(false));
    let variables: Vec<_> = settings.secrets.variables().collect();
    assert_eq!(variables, [("AWS_SECRET_ACCESS_KEY", "hush")]);
    assert!(!format!("{settings:?}").contains("hush"));
}

#[test]
fn a_secret_has_one_source() {
    let (folder, path) = file("SLUICE_PURGE_TOKEN", TOKEN);
    let folder = ("CREDENTIALS_DIRECTORY", folder.path().to_str().unwrap());
    let (value, of_file) = (
        ("PURGE_TOKEN", TOKEN),
        ("SLUICE_PURGE_TOKEN_FILE", "/other"),
    );
    for (variables, sources) in [
        (
            &[value, of_file][..],
            "PURGE_TOKEN and SLUICE_PURGE_TOKEN_FILE",
        ),
        (
            &[value, folder],
            "PURGE_TOKEN and CREDENTIALS_DIRECTORY with SLUICE_PURGE_TOKEN",
        ),
        (
            &[of_file, ("PURGE_TOKEN_FILE", &path)],
            "SLUICE_PURGE_TOKEN_FILE and PURGE_TOKEN_FILE",
        ),
    ] {
        let expected = format!("{sources}: expected only one of them");
        assert_eq!(problems(variables), [expected]);
    }
}

#[test]
fn a_file_that_has_no_secret_is_refused_by_its_name() {
    let missing = problems(&[("SLUICE_PURGE_TOKEN_FILE", "/no/such/file")]);
    let expected = "SLUICE_PURGE_TOKEN_FILE: expected /no/such/file to be a file that can be read";
    assert!(
        missing.len() == 1 && missing[0].starts_with(expected),
        "{missing:?}"
    );
    let (_folder, path) = file("empty", "\n");
    let expected = format!("AWS_ACCESS_KEY_ID_FILE: expected {path} to have a secret: it is empty");
    let empty = problems(&[("AWS_ACCESS_KEY_ID_FILE", &path)]);
    assert!(empty.contains(&expected), "{empty:?}");
    let (_folder, path) = file("lines", "hush\nhush\n");
    let lines = problems(&[
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY_FILE", &path),
    ]);
    let expected = "AWS_SECRET_ACCESS_KEY: must have no line end";
    assert!(
        lines.len() == 1 && lines[0].starts_with(expected),
        "{lines:?}"
    );
}

#[test]
fn a_secret_of_a_site_may_be_in_a_file() {
    let (folder, path) = file("ASSETS_TOKEN", &format!("{TOKEN}\n"));
    let sites = folder.path().join("sites.yaml");
    let text = "sites: [{name: assets, origin: s3://assets, purge_token: ASSETS_TOKEN}]";
    std::fs::write(&sites, text).unwrap();
    let sites = ("SLUICE_SITES", sites.to_str().unwrap());
    let credentials = folder.path().to_str().unwrap();
    for of_file in [
        ("ASSETS_TOKEN_FILE", path.as_str()),
        ("CREDENTIALS_DIRECTORY", credentials),
    ] {
        let settings = read(&[sites, of_file]).unwrap();
        let site = &settings.sites.unwrap().sites[0];
        assert!(site.purge_token.is_some(), "{of_file:?}");
    }
    let missing = problems(&[sites, ("ASSETS_TOKEN_FILE", "/no/such/file")]);
    let expected = "ASSETS_TOKEN_FILE: expected /no/such/file to be a file that can be read";
    assert!(missing[0].contains(expected), "{missing:?}");
}
