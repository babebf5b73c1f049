// SPDX-License-Identifier: Apache-2.0
//! The results as text for a repository: what each story has printed, below the command that made it.

use serde_json::Value;
use std::fmt::Write as _;

/// The page of these results.
pub fn page(results: &[Value]) -> String {
    let mut page = "# Sluice beside its peers\n".to_owned();
    for result in results {
        section(&mut page, result);
    }
    page
}

fn section(page: &mut String, result: &Value) {
    let text = |name: &str| result[name].as_str().unwrap_or_default();
    let story = text("story");
    let quick = if result["quick"] == true {
        " QUICK=1"
    } else {
        ""
    };
    // NB: writing to a String cannot fail.
    let _ = write!(
        page,
        "\n## {story}\n\n`make bench STORY={story}{quick}`\n\n```text\n{}\n```\n",
        text("text")
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_story_stands_below_its_command() {
        let results = [
            json!({"story": "hits", "text": "Hits\n\nFindings", "quick": false}),
            json!({"story": "wall", "text": "Wall", "quick": true}),
        ];
        let page = page(&results);
        assert!(
            page.contains(
                "\n## hits\n\n`make bench STORY=hits`\n\n```text\nHits\n\nFindings\n```\n"
            )
        );
        assert!(page.contains("`make bench STORY=wall QUICK=1`"), "{page}");
    }
}
