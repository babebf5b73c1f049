// SPDX-License-Identifier: Apache-2.0
//! Results as pages: an HTML file that is readable offline, and text for a terminal or a repository.

use comfy_table::presets::ASCII_MARKDOWN;
use minijinja::{Environment, context};
use serde_json::Value;

const HTML: &str = include_str!("../../report.html.j2");
const SECTION: &str = include_str!("../../section.md.j2");

/// The page of these results, with their pictures.
pub fn html(results: &[Value]) -> String {
    rendered("report.html", context! { results })
}

/// What each story has printed, below the command that made it.
pub fn markdown(results: &[Value]) -> String {
    let sections: Vec<_> = results.iter().map(section).collect();
    format!("# Sluice beside its peers\n\n{}", sections.join("\n"))
}

/// What one story has found, without its pictures.
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
    environment
        .add_template("section.md", SECTION)
        .expect("a template");
    let template = environment.get_template(template).expect("a template");
    template.render(context).expect("results")
}

/// A table in Markdown that is read as it is, too: numbers are to the right.
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
    use crate::report::bars;
    use serde_json::json;
    use sluice_tests::client::browser::Browser;

    fn results() -> Value {
        json!({
            "story": "wall", "title": "The 500 ms wall", "about": "2 cores\nLinux", "quick": true,
            "findings": ["1 < 2 & 3"],
            "tables": [{"columns": ["ms", "max"], "rows": [["the bucket itself", "4.0"], ["nginx", "500"]]}],
            "pictures": [bars("CPU time in microseconds", "us", [("nginx", 80.0)])],
        })
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = html(&[results()]);
        let addresses = page.matches("://").count();
        assert_eq!(addresses, page.matches("http://www.w3.org/").count());
        for part in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(part), "{part}");
        }
    }

    #[test]
    fn each_story_stands_below_its_command() {
        let page = markdown(&[results(), json!({"story": "hits", "title": "Hits"})]);
        for part in [
            "## The 500 ms wall\n\n`make bench STORY=wall QUICK=1`\n\n2 cores\nLinux\n",
            "| ms                | max |\n|-------------------|-----|\n| the bucket itself | 4.0 |\n",
            "- 1 < 2 & 3\n",
            "\n## Hits\n\n`make bench STORY=hits`\n",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
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
        let page = html(&[results()]).replace("</body>", script);
        std::fs::write(&file, page).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let url = format!("file://{}", file.display());
        let shown = runtime.unwrap().block_on(browser.document(&url));
        for part in [
            "<li>1 &lt; 2 &amp; 3</li>",
            "<td>nginx</td>",
            "CPU time in microseconds",
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
