// SPDX-License-Identifier: Apache-2.0
//! The maintenance page of a policy, which the policy's author keeps in a file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use sluice_core::policy::MAX_PAGE_BYTES;

/// The place of the page in a policy's document.
const POINTER: &str = "/response/maintenance_page";
const FIELD: &str = "response.maintenance_page";

/// The file that a policy's document names, if it names one in place of a page.
pub fn file(policy: &Value) -> Option<PathBuf> {
    let named = policy.pointer(POINTER).and_then(Value::as_str);
    named
        .filter(|text| !text.starts_with('<'))
        .map(PathBuf::from)
}

/// Replaces the name of the file in a policy's document by the page.
///
/// # Errors
/// The file cannot be read, is not an HTML page, or is too large, or its name is relative.
pub fn insert(policy: &mut Value) -> anyhow::Result<()> {
    let Some(path) = file(policy) else {
        return Ok(());
    };
    let page = read(&path).with_context(|| format!("{FIELD}: {path:?}"))?;
    if let Some(named) = policy.pointer_mut(POINTER) {
        *named = page.into();
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    ensure!(
        path.is_absolute(),
        "expected the absolute path of a file, or a page that begins with <"
    );
    let size = fs::metadata(path).context("expected a file that can be read")?;
    ensure!(
        size.len() <= MAX_PAGE_BYTES as u64,
        "the file has {} bytes: expected at most {MAX_PAGE_BYTES}",
        size.len()
    );
    let text = fs::read_to_string(path).context("expected a file that is text")?;
    let page = text.trim_start_matches(|mark: char| mark.is_whitespace() || mark == '\u{feff}');
    ensure!(
        page.starts_with('<'),
        "the file begins with other text than <: expected an HTML page"
    );
    Ok(page.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_of_a_file_replaces_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sorry.html");
        fs::write(&path, "\u{feff}\n<h1>Soon</h1>\n").unwrap();
        let mut policy = json!({"response": {"maintenance_page": path}});
        assert_eq!(file(&policy), Some(path));
        insert(&mut policy).unwrap();
        let page = json!({"response": {"maintenance_page": "<h1>Soon</h1>\n"}});
        assert_eq!(policy, page);
        insert(&mut policy).unwrap();
        assert_eq!(policy, page);
    }

    #[test]
    fn a_file_without_a_page_is_refused_with_the_field_and_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(at("text"), "Soon").unwrap();
        fs::write(at("large"), format!("<p>{}", "x".repeat(MAX_PAGE_BYTES))).unwrap();
        fs::write(at("bytes"), [b'<', 0xff]).unwrap();
        for (path, expected) in [
            ("sorry.html".to_owned(), "expected the absolute path"),
            (at("none"), "expected a file that can be read"),
            (at("text"), "expected an HTML page"),
            (at("large"), "expected at most 65536"),
            (at("bytes"), "expected a file that is text"),
        ] {
            let mut policy = json!({"response": {"maintenance_page": path}});
            let error = format!("{:#}", insert(&mut policy).unwrap_err());
            let start = format!("response.maintenance_page: {path:?}: ");
            assert!(
                error.starts_with(&start) && error.contains(expected),
                "{error}"
            );
        }
    }
}
