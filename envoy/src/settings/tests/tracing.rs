// SPDX-License-Identifier: Apache-2.0
//! Traces.

use super::*;

const COLLECTOR: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector/otlp");

fn traces(variables: &[(&str, &str)]) -> Tracing {
    let variables = [&[COLLECTOR], variables].concat();
    read(&variables).unwrap().tracing.unwrap()
}

#[test]
fn traces_are_off_without_a_collector_or_if_the_sdk_is_disabled() {
    assert_eq!(read(&[]).unwrap().tracing, None);
    let disabled = read(&[COLLECTOR, ("OTEL_SDK_DISABLED", "true")]).unwrap();
    assert_eq!(disabled.tracing, None);
    let enabled = traces(&[("OTEL_SDK_DISABLED", "false")]);
    assert_eq!(
        enabled.collector.to_string(),
        "https://collector/otlp/v1/traces"
    );
}

#[test]
fn the_values_of_headers_are_secrets_for_envoys_environment() {
    let headers = "Authorization=Basic%20hush,x-tenant=a";
    let settings = read(&[COLLECTOR, ("OTEL_EXPORTER_OTLP_HEADERS", headers)]).unwrap();
    let secrets: Vec<_> = settings.secrets.variables().collect();
    assert_eq!(
        secrets,
        [
            ("SLUICE_OTLP_HEADER_0", "Basic hush"),
            ("SLUICE_OTLP_HEADER_1", "a")
        ]
    );
    let tracing = settings.tracing.as_ref().unwrap();
    let names = tracing.headers.iter().map(|header| header.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["authorization", "x-tenant"]);
    assert!(!format!("{settings:?}").contains("hush"));
    for wrong in ["hush", "a b=hush", "a=hush%0a", "host=hush", "a=hush%2"] {
        let problems = problems(&[COLLECTOR, ("OTEL_EXPORTER_OTLP_HEADERS", wrong)]);
        let problem = problems.join("\n");
        let start = "OTEL_EXPORTER_OTLP_HEADERS: must be NAME=VALUE";
        assert!(
            problem.starts_with(start) && !problem.contains("hush"),
            "{problem}"
        );
    }
}

#[test]
fn the_edges_name_in_traces_is_an_attribute_unless_it_is_set() {
    let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=edge,zone=a%20b");
    let tracing = traces(&[attributes]);
    assert_eq!(tracing.service, "edge");
    assert_eq!(tracing.attributes, [("zone".to_owned(), "a b".to_owned())]);
    assert_eq!(
        traces(&[attributes, ("OTEL_SERVICE_NAME", "own")]).service,
        "own"
    );
    assert_eq!(traces(&[]).service, "sluice");
}
