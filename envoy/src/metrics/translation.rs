// SPDX-License-Identifier: Apache-2.0
//! The translation of Envoy's text into families: Envoy knows neither labels nor help texts of the filter's metrics,
//! and counts times in milliseconds.

use std::collections::HashMap;
use std::sync::LazyLock;

use sluice_core::metrics::{FamilyMember, Metric};

use super::exposition::{Exposition, written};

/// The filter's metrics by their name in Envoy's statistics.
static MEMBERS: LazyLock<HashMap<&'static str, FamilyMember>> = LazyLock::new(|| {
    let all = Metric::ALL.iter();
    all.map(|metric| (metric.name(), metric.in_family()))
        .collect()
});

/// Adds the filter's metrics in `text` to `exposition`. `text` is the answer of Envoy's admin interface to
/// `/stats/prometheus`. Returns the lines of Envoy's own metrics.
pub fn translate(text: &str, exposition: &mut Exposition) -> String {
    let mut others = String::with_capacity(text.len());
    let mut present: Option<(&str, FamilyMember)> = None;
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let name = declared.split(' ').next().unwrap_or_default();
            present = MEMBERS.get(name).map(|member| (name, *member));
            if present.is_some() {
                continue;
            }
        }
        let added = present.and_then(|(name, member)| add(line, name, member, exposition));
        if added.is_none() {
            others.push_str(line);
            others.push('\n');
        }
    }
    others
}

/// Adds the sample on `line`, which begins with `name`. `None`: the line is not a sample of that metric.
fn add(line: &str, name: &str, member: FamilyMember, exposition: &mut Exposition) -> Option<()> {
    let (series, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
    let (suffix, labels) = series.split_once('{').unwrap_or((series, ""));
    let labels = labels.strip_suffix('}').unwrap_or(labels);
    let of_envoy = match suffix {
        "_bucket" => scale_bound(labels, member.divisor)?,
        _ => labels.to_owned(),
    };
    let labels = [written(member.label.as_slice()), of_envoy];
    let labels: Vec<_> = labels.into_iter().filter(|part| !part.is_empty()).collect();
    let labels = labels.join(",");
    match suffix {
        "_sum" => {
            let sum = divide(value, member.divisor)?;
            exposition.add_series(member.family, suffix, &labels, sum);
        }
        _ => exposition.add_series(member.family, suffix, &labels, value),
    }
    Some(())
}

/// The labels with the upper bound of a bucket (`le`) divided.
fn scale_bound(labels: &str, divisor: u32) -> Option<String> {
    let (others, bound) = labels.split_once("le=\"")?;
    let (bound, rest) = bound.split_once('"')?;
    let bound = match bound {
        "+Inf" => bound.to_owned(),
        bound => divide(bound, divisor)?.to_string(),
    };
    Some(format!("{others}le=\"{bound}\"{rest}"))
}

fn divide(value: &str, divisor: u32) -> Option<f64> {
    Some(value.parse::<f64>().ok()? / f64::from(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str) -> (String, String) {
        let mut exposition = Exposition::default();
        let others = translate(text, &mut exposition);
        (exposition.to_string(), others)
    }

    #[test]
    fn results_become_labels_of_one_family() {
        let (ours, others) = translated(
            "# TYPE sluice_requests_hit counter\n\
             sluice_requests_hit{} 1\n\
             sluice_requests_hit{site=\"a\"} 2\n\
             # TYPE sluice_requests_miss counter\n\
             sluice_requests_miss{site=\"a\"} 3\n",
        );
        let expected = "# HELP sluice_requests_total Requests of clients, by result.\n\
            # TYPE sluice_requests_total counter\n\
            sluice_requests_total{result=\"hit\"} 1\n\
            sluice_requests_total{result=\"hit\",site=\"a\"} 2\n\
            sluice_requests_total{result=\"miss\",site=\"a\"} 3\n";
        assert_eq!((ours.as_str(), others.as_str()), (expected, ""));
    }

    #[test]
    fn times_are_in_seconds() {
        let (ours, _) = translated(
            "# TYPE sluice_wait_milliseconds histogram\n\
             sluice_wait_milliseconds_bucket{le=\"0.5\"} 0\n\
             sluice_wait_milliseconds_bucket{site=\"a\",le=\"2500\"} 1\n\
             sluice_wait_milliseconds_bucket{le=\"+Inf\"} 2\n\
             sluice_wait_milliseconds_sum{} 2605.5\n\
             sluice_wait_milliseconds_count{} 2\n",
        );
        let samples: Vec<_> = ours.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "sluice_coalescing_wait_seconds_bucket{le=\"0.0005\"} 0",
                "sluice_coalescing_wait_seconds_bucket{site=\"a\",le=\"2.5\"} 1",
                "sluice_coalescing_wait_seconds_bucket{le=\"+Inf\"} 2",
                "sluice_coalescing_wait_seconds_sum 2.6055",
                "sluice_coalescing_wait_seconds_count 2",
            ]
        );
    }

    #[test]
    fn envoys_own_metrics_stay_as_they_are() {
        const ENVOY: &str = "# TYPE envoy_http_downstream_rq_time histogram\n\
            envoy_http_downstream_rq_time_bucket{le=\"0.5\"} 0\n\
            # TYPE sluice_unknown counter\n\
            sluice_unknown{} 1\n";
        let text = format!("# TYPE sluice_hot_hits counter\nsluice_hot_hits{{}} 4\n\n{ENVOY}");
        let (ours, others) = translated(&text);
        assert!(ours.ends_with("\nsluice_hot_hits_total 4\n"), "{ours}");
        assert_eq!(others, format!("\n{ENVOY}"));
    }
}
