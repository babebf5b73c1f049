// SPDX-License-Identifier: Apache-2.0
//! The results as one HTML file, readable offline.

use crate::report::plot::{self, Bar, Curve};
use serde_json::Value;
use std::fmt::Write as _;

const STYLE: &str = include_str!("../../report.css");

/// The page of these results.
pub fn page(results: &[Value]) -> String {
    let mut body = String::new();
    for result in results {
        section(&mut body, result);
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Sluice beside its peers</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Sluice beside its peers</h1>\n{body}</body>\n</html>\n"
    )
}

fn section(body: &mut String, result: &Value) {
    let text = result["text"].as_str().unwrap_or_default();
    let mut lines = text.lines();
    // NB: writing to a String cannot fail.
    let _ = writeln!(
        body,
        "<section id=\"{}\">\n<h2>{}</h2>",
        escaped(result["story"].as_str().unwrap_or_default()),
        escaped(lines.next().unwrap_or_default())
    );
    let about: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    let _ = writeln!(
        body,
        "<p class=\"about\">{}</p>",
        escaped(&about.join("\n"))
    );
    if result["quick"] == true {
        body.push_str("<p class=\"warning\">Measured with QUICK=1: that the machinery works, not how fast it is.</p>\n");
    }
    if let Some(findings) = result["findings"].as_array() {
        body.push_str("<h3>Findings</h3>\n<ul>\n");
        for finding in findings.iter().filter_map(Value::as_str) {
            let _ = writeln!(body, "<li>{}</li>", escaped(finding));
        }
        body.push_str("</ul>\n");
    }
    for more in result["tables"].as_array().into_iter().flatten() {
        let rows = more["rows"].as_array().cloned().unwrap_or_default();
        table(body, &more["columns"], &rows);
    }
    plots(body, result);
    match result["table"].as_array() {
        Some(rows) => table(body, &result["columns"], rows),
        None => {
            let _ = writeln!(body, "<pre>{}</pre>", escaped(text));
        }
    }
    body.push_str("</section>\n");
}

fn table(body: &mut String, columns: &Value, rows: &[Value]) {
    let line = |body: &mut String, cells: &Value, tag: &str| {
        body.push_str("<tr>");
        for cell in cells.as_array().into_iter().flatten() {
            let cell = escaped(cell.as_str().unwrap_or_default());
            let _ = write!(body, "<{tag}>{cell}</{tag}>");
        }
        body.push_str("</tr>\n");
    };
    body.push_str("<div class=\"wide\"><table>\n<thead>");
    line(body, columns, "th");
    body.push_str("</thead>\n<tbody>\n");
    for row in rows {
        line(body, row, "td");
    }
    body.push_str("</tbody>\n</table></div>\n");
}

/// Plots and bars that the story has made; for each rate the distributions, and what the servers took of the machine.
fn plots(body: &mut String, result: &Value) {
    let drawn = result["plots"].as_array().into_iter().flatten();
    for plot in drawn.filter_map(Value::as_str) {
        figure(body, plot);
    }
    for plot in result["bars"].as_array().into_iter().flatten() {
        let bars = plot["bars"].as_array().into_iter().flatten();
        let bar = |bar: &Value| {
            Some(Bar {
                name: bar["name"].as_str()?.to_owned(),
                value: bar["value"].as_f64()?,
            })
        };
        let title = plot["title"].as_str().unwrap_or_default();
        figure(
            body,
            &plot::bars(title, &bars.filter_map(bar).collect::<Vec<_>>()),
        );
    }
    let rows = result["rows"].as_array().cloned().unwrap_or_default();
    let mut rates: Vec<_> = rows.iter().filter_map(|row| row["rate"].as_u64()).collect();
    rates.dedup();
    for rate in rates {
        let of_rate: Vec<_> = rows.iter().filter(|row| row["rate"] == rate).collect();
        let curves: Vec<_> = of_rate.iter().map(|row| curve(row)).collect();
        let title = format!("Time per request by percentile, {rate} requests a second");
        figure(body, &plot::percentiles(&title, &curves));
        for (field, title) in [
            ("cpu_us_per_request", "CPU time per request in microseconds"),
            ("peak_mib", "Peak memory in MiB"),
        ] {
            let bars: Vec<_> = of_rate.iter().filter_map(|row| bar(row, field)).collect();
            if !bars.is_empty() {
                figure(
                    body,
                    &plot::bars(&format!("{title}, {rate} requests a second"), &bars),
                );
            }
        }
    }
}

fn figure(body: &mut String, svg: &str) {
    let _ = writeln!(body, "<figure>{svg}</figure>");
}

fn name(row: &Value) -> String {
    row["contender"].as_str().unwrap_or_default().to_owned()
}

/// The median round at each percentile.
fn curve(row: &Value) -> Curve {
    let runs = row["runs"].as_array().cloned().unwrap_or_default();
    let numbers = |value: &Value| -> Vec<f64> {
        let values = value.as_array().into_iter().flatten();
        values.filter_map(Value::as_f64).collect()
    };
    let percentiles = runs
        .first()
        .map(|run| numbers(&run["latency"]["percentiles"]))
        .unwrap_or_default();
    let rounds: Vec<_> = runs
        .iter()
        .map(|run| numbers(&run["latency"]["sent"]))
        .collect();
    let points = percentiles
        .iter()
        .enumerate()
        .filter_map(|(at, &percentile)| {
            let values = rounds.iter().filter_map(|round| round.get(at).copied());
            Some((percentile, median(values.collect())?))
        });
    Curve {
        name: name(row),
        points: points.collect(),
    }
}

fn bar(row: &Value, field: &str) -> Option<Bar> {
    let runs = row["runs"].as_array()?;
    let values = runs.iter().filter_map(|run| run[field].as_f64());
    Some(Bar {
        name: name(row),
        value: median(values.collect())?,
    })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sluice_tests::browser::Browser;

    fn results() -> Value {
        let run = |times: [f64; 4], cpu: Option<f64>| {
            json!({
                "latency": {"percentiles": [0.0, 50.0, 99.0, 100.0], "sent": times},
                "cpu_us_per_request": cpu, "peak_mib": cpu,
            })
        };
        let rows = [
            json!({"contender": "the bucket itself", "rate": 100, "runs": [run([0.5, 1.0, 2.0, 4.0], None)]}),
            json!({"contender": "nginx, lock", "rate": 100, "runs": [run([0.1, 1.0, 2.0, 500.0], Some(80.0))]}),
        ];
        json!({
            "story": "wall", "text": "The 500 ms wall\n2 cores\n\na table", "quick": true,
            "findings": ["1 < 2 & 3"], "columns": ["ms", "max"],
            "table": [["the bucket itself", "4.0"], ["nginx, lock", "500"]], "rows": rows,
        })
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = page(&[results()]);
        let addresses = page.matches("://").count();
        assert_eq!(addresses, page.matches("http://www.w3.org/").count());
        for part in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(part), "{part}");
        }
    }

    #[test]
    fn a_result_without_rows_is_shown_as_its_text() {
        let page = page(&[json!({"story": "wake", "text": "Waking\n\na  <b>"})]);
        assert!(page.contains("<pre>Waking\n\na  &lt;b&gt;</pre>"), "{page}");
    }

    #[test]
    fn a_browser_shows_the_findings_the_table_and_the_plots() {
        let Some(browser) = Browser::find() else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.html");
        let script = "<script>document.title = [...document.querySelectorAll('svg')].map(\
             (svg) => Math.round(svg.getBoundingClientRect().height / 100)).join()</script></body>";
        let page = page(&[results()]).replace("</body>", script);
        std::fs::write(&file, page).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let url = format!("file://{}", file.display());
        let shown = runtime.unwrap().block_on(browser.document(&url));
        for part in [
            "<li>1 &lt; 2 &amp; 3</li>",
            "<td>nginx, lock</td>",
            "Time per request by percentile, 100 requests a second",
            "CPU time per request in microseconds",
            "QUICK=1",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        // The browser has drawn three plots, each with a height.
        let title = shown
            .split_once("<title>")
            .unwrap()
            .1
            .split_once('<')
            .unwrap()
            .0;
        let heights: Vec<u32> = title
            .split(',')
            .map(|height| height.parse().unwrap())
            .collect();
        assert!(heights.len() == 3 && heights[0] >= 3, "{heights:?}");
    }
}
