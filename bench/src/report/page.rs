// SPDX-License-Identifier: Apache-2.0
//! Results as pages: an HTML file that is readable offline, and text for a terminal or a repository.

use comfy_table::presets::ASCII_MARKDOWN;
use minijinja::{Environment, context};
use serde_json::Value;

const HTML: &str = include_str!("../../report.html.j2");
const HEAD: &str = include_str!("../../head.md.j2");
const SECTION: &str = include_str!("../../section.md.j2");

/// Results of one commit.
pub struct Page {
    results: Vec<Value>,
    /// The results of other commits, which are named and not shown.
    left_out: Vec<Value>,
}

impl Page {
    /// Makes a page of the newest of these results and the others of its commit.
    pub fn of(results: Vec<Value>) -> Self {
        let newest = results.iter().max_by_key(|result| result["ended"].as_u64());
        let commit = newest.map(|result| result["commit"].clone());
        let (results, left_out) = results
            .into_iter()
            .partition(|result| Some(&result["commit"]) == commit.as_ref());
        Self { results, left_out }
    }

    /// The page with the pictures.
    pub fn html(&self) -> String {
        rendered("report.html", self.context())
    }

    /// The printed results of each story, below the command that made them.
    pub fn markdown(&self) -> String {
        let head = rendered("head.md", self.context());
        let sections: Vec<_> = self.results.iter().map(section).collect();
        format!("{head}\n{}", sections.join("\n"))
    }

    fn context(&self) -> minijinja::Value {
        let (results, left_out) = (&self.results, &self.left_out);
        let newest = results.iter().max_by_key(|result| result["ended"].as_u64());
        let of_story = |result: &Value| {
            let sentences = result["peer_ahead"].as_array().cloned();
            let sentences = sentences.unwrap_or_default().into_iter();
            let story = result["story"].clone();
            sentences.map(move |sentence| (story.clone(), sentence))
        };
        let peer_ahead: Vec<_> = results.iter().flat_map(of_story).collect();
        context! { results, left_out, newest, peer_ahead }
    }
}

/// Results of one story, without its pictures.
pub fn section(result: &Value) -> String {
    rendered("section.md", context! { result })
}

fn rendered(template: &str, context: minijinja::Value) -> String {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_filter("table", table);
    environment
        .add_template("report.html", HTML)
        .expect("a template");
    for (name, source) in [("head.md", HEAD), ("section.md", SECTION)] {
        environment.add_template(name, source).expect("a template");
    }
    let template = environment.get_template(template).expect("a template");
    template.render(context).expect("results")
}

/// A table in Markdown that is readable as text, too: numbers are aligned to the right.
fn table(columns: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table
        .load_style(ASCII_MARKDOWN)
        .set_header(columns)
        .add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Distribution, Row};
    use crate::report::by_percentile;
    use serde_json::json;
    use sluice_tests::client::browser::Browser;
    use std::time::{Duration, SystemTime};

    fn picture() -> String {
        let times = Distribution::since(SystemTime::now(), [Duration::from_millis(80)]);
        let mut row = Row::new("nginx");
        row.runs.add((times, 0.0));
        by_percentile(
            "Times of nginx",
            [&row],
            |name| (*name).to_owned(),
            |times| times,
        )
    }

    fn results() -> Value {
        json!({
            "story": "wall", "ended": 2, "commit": "1a2b", "machine": "a processor", "packages": "nginx 1.26.3-3",
            "peer_ahead": ["nginx has less."], "title": "The 500 ms wall", "about": "2 cores\nLinux", "quick": true,
            "findings": ["1 < 2 & 3"],
            "tables": [{"columns": ["ms", "max"], "rows": [["the bucket itself", "4.0"], ["nginx", "500"]]}],
            "pictures": [picture()],
        })
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = Page::of(vec![results()]).html();
        let addresses = page.matches("://").count();
        assert_eq!(addresses, page.matches("http://www.w3.org/").count());
        for part in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(part), "{part}");
        }
    }

    #[test]
    fn each_story_stands_below_its_command() {
        let hits = json!({"story": "hits", "ended": 1, "commit": "1a2b", "title": "Hits"});
        let page = Page::of(vec![results(), hits]).markdown();
        for part in [
            "Commit `1a2b`, on a processor. The peers are Debian's packages: nginx 1.26.3-3.\n",
            "## Where a peer is ahead\n\n- `wall`: nginx has less.\n",
            "## The 500 ms wall\n\n`make bench STORY=wall QUICK=1`\n\n2 cores\nLinux\n",
            "| ms                | max |\n|-------------------|-----|\n| the bucket itself | 4.0 |\n",
            "- 1 < 2 & 3\n",
            "\n## Hits\n\n`make bench STORY=hits`\n",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn a_page_has_the_results_of_one_commit_and_names_the_others() {
        let older = json!({"story": "hits", "ended": 1, "commit": "0f0f", "title": "Hits"});
        let page = Page::of(vec![older, results()]);
        let (html, markdown) = (page.html(), page.markdown());
        assert!(!html.contains("<h2>Hits") && !markdown.contains("## Hits"));
        assert!(html.contains("hits of 0f0f."), "{html}");
        assert!(markdown.contains("`hits` of `0f0f`."), "{markdown}");
    }

    #[test]
    fn a_browser_shows_the_findings_the_table_and_the_pictures() {
        let Some(browser) = Browser::find() else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.html");
        let script = "<script>document.title = [...document.querySelectorAll('svg')].map(\
             (svg) => Math.round(svg.getBoundingClientRect().height / 10)).join()</script></body>";
        let page = Page::of(vec![results()]).html().replace("</body>", script);
        std::fs::write(&file, page).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let url = format!("file://{}", file.display());
        let shown = runtime.unwrap().block_on(browser.document(&url));
        for part in [
            "<li>1 &lt; 2 &amp; 3</li>",
            "<td>nginx</td>",
            "Times of nginx",
            "QUICK=1",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        // The browser has drawn the picture, with a height.
        let title = shown.split_once("<title>").unwrap().1;
        let height: u32 = title.split_once('<').unwrap().0.parse().unwrap();
        assert!(height >= 3, "{height}");
    }
}
