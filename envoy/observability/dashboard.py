#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dashboard.json, which Grafana imports, from the panels below: dashboard.py > dashboard.json

A row is a title and its panels; a panel is a title, a unit of Grafana's and one line for each curve: the legend and
the query. $job and $instance are the dashboard's variables.
"""
import json

EDGE = 'job=~"$job",instance=~"$instance"'
CLIENTS = 'envoy_http_conn_manager_prefix!~"origin|sluice_background|purge|metrics|admin"'
ORIGIN = 'envoy_http_conn_manager_prefix="origin"'


def rate(metric, *more):
    """The rate of a counter, summed over edges and their parts."""
    selector = ",".join([EDGE, *more])
    return f"sum(rate({metric}{{{selector}}}[$__rate_interval]))"


def by(label, metric, *more):
    """The rate for each value of a label."""
    return rate(metric, *more).replace("sum(", f"sum by ({label}) (", 1)


def gauge(metric):
    """A gauge, summed over edges."""
    return f"sum({metric}{{{EDGE}}})"


def percentiles(metric, *more):
    """Median, p90 and p99 of a histogram."""
    buckets = by("le", f"{metric}_bucket", *more)
    return [(f"p{p}", f"histogram_quantile({p / 100}, {buckets})") for p in (50, 90, 99)]


RESULTS = ["hit", "miss", "revalidated", "stale", "collapsed", "hit_for_miss", "passed", "rejected"]

ROWS = [
    ("Is it well?", [
        ("Hit ratio", "percentunit", [("requests", 'sluice:hit_ratio:rate5m{job=~"$job"}'),
                                      ("bytes", 'sluice:byte_hit_ratio:rate5m{job=~"$job"}')]),
        ("Errors that clients get", "percentunit", [("5xx", 'sluice:error_ratio:rate5m{job=~"$job"}')]),
        ("Origin offload", "percentunit", [("requests", 'sluice:origin_offload:rate5m{job=~"$job"}')]),
        ("Alerts", "short", [("{{alertname}}", 'ALERTS{alertstate="firing",alertname=~"Sluice.*"} or vector(0)')]),
    ]),
    ("Clients", [
        ("Requests by result", "reqps", [(result, rate(f"sluice_requests_{result}")) for result in RESULTS]),
        ("Responses by class", "reqps",
         [("{{envoy_response_code_class}}xx",
           by("envoy_response_code_class", "envoy_http_downstream_rq_xx", CLIENTS))]),
        ("Time per request", "ms", percentiles("envoy_http_downstream_rq_time", CLIENTS)),
        ("Bytes", "Bps", [("to clients", rate("envoy_http_downstream_cx_tx_bytes_total", CLIENTS)),
                          ("from the origin", rate("envoy_http_downstream_cx_tx_bytes_total", ORIGIN))]),
        ("Connections", "short", [("{{envoy_http_conn_manager_prefix}}",
                                   f"sum by (envoy_http_conn_manager_prefix) "
                                   f"(envoy_http_downstream_cx_active{{{EDGE},{CLIENTS}}})")]),
    ]),
    ("Coalescing", [
        ("Waiting now", "short", [("requests", gauge("sluice_parked_now")), ("keys", gauge("sluice_flights_now"))]),
        ("Time that requests waited", "ms", percentiles("sluice_wait_milliseconds")),
        ("Leaders and followers", "reqps", [("led", rate("sluice_flights_led")),
                                            ("parked", rate("sluice_followers_parked")),
                                            ("failed", rate("sluice_followers_failed"))]),
        ("What went otherwise", "reqps", [("timed out", rate("sluice_wait_timeouts")),
                                          ("handed over", rate("sluice_handovers")),
                                          ("not shared", rate("sluice_unshared")),
                                          ("bound reached", rate("sluice_limits_reached")),
                                          ("host errors", rate("sluice_host_errors"))]),
    ]),
    ("Origin", [
        ("Requests to the origin", "reqps", [("all", rate("sluice_origin_fetches")),
                                             ("refreshes", rate("sluice_refreshes")),
                                             ("failed refreshes", rate("sluice_refresh_failures")),
                                             ("given up", rate("sluice_origin_overdue"))]),
        ("Answers by class", "reqps",
         [("{{envoy_response_code_class}}xx", by("envoy_response_code_class", "envoy_http_downstream_rq_xx", ORIGIN))]),
        ("Time of the origin", "ms", percentiles("envoy_http_downstream_rq_time", ORIGIN)),
        ("Connections to the origin", "short",
         [("open", f'sum(envoy_cluster_upstream_cx_active{{{EDGE},envoy_cluster_name=~"origin_server.*"}})'),
          ("failed", rate("envoy_cluster_upstream_cx_connect_fail", 'envoy_cluster_name=~"origin_server.*"')),
          ("retried requests", rate("envoy_cluster_upstream_rq_retry", 'envoy_cluster_name=~"origin_server.*"'))]),
    ]),
    ("Store", [
        ("Fullness", "percentunit",
         [("{{instance}}", 'sluice:cache_fullness:ratio{job=~"$job",instance=~"$instance"}')]),
        ("Size", "bytes", [("stored", gauge("envoy_cache_size_bytes")),
                           ("limit", gauge("envoy_cache_size_limit_bytes")),
                           ("in the workers' memory", gauge("sluice_hot_bytes_now"))]),
        ("Objects", "short", [("stored", gauge("envoy_cache_size_count")),
                              ("limit", gauge("envoy_cache_size_limit_count")),
                              ("known to be fresh", gauge("sluice_hints_now")),
                              ("in the workers' memory", gauge("sluice_hot_objects_now"))]),
        ("Out of the workers' memory", "ops", [("hits", rate("sluice_hot_hits")),
                                               ("taken in", rate("sluice_hot_admissions")),
                                               ("given up", rate("sluice_hot_evictions"))]),
        ("Evictions and their victims", "ops", [("eviction runs", rate("envoy_cache_eviction_runs")),
                                                ("asked for again", rate("sluice_unexpected_misses"))]),
        ("Purges", "ops", [("purges", rate("sluice_purges")), ("refused", rate("sluice_purges_refused")),
                           ("SNS refused", rate("sluice_sns_refused")),
                           ("SNS not verified", rate("sluice_sns_unverified")),
                           ("revalidations", rate("sluice_purge_revalidations"))]),
    ]),
    ("Process", [
        ("Memory", "bytes", [("{{instance}}", f"envoy_server_memory_physical_size{{{EDGE}}}")]),
        ("Filter begun anew", "ops", [("edge's VM", rate("envoy_wasm_edge_vm_reload")),
                                      ("origin's VM", rate("envoy_wasm_origin_vm_reload")),
                                      ("native worker", rate("sluice_workers_lost"))]),
        ("Up for", "s", [("{{instance}}", f"envoy_server_uptime{{{EDGE}}}")]),
    ]),
]

WIDTH, HEIGHT, COLUMNS = 6, 7, 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def panel(number, x, y, title, unit, curves):
    """A panel with its place on the grid."""
    return {
        "id": number, "type": "timeseries", "title": title, "datasource": DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"fillOpacity": 10}}, "overrides": []},
        "options": {"tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [{"refId": chr(ord("A") + index), "datasource": DATASOURCE, "legendFormat": legend, "expr": query}
                    for index, (legend, query) in enumerate(curves)],
    }


def panels():
    """All rows and panels from top to bottom."""
    number, y = 1, 0
    for row, content in ROWS:
        yield {"id": number, "type": "row", "title": row, "collapsed": False, "panels": [],
               "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}}
        number, y, x = number + 1, y + 1, 0
        for title, unit, curves in content:
            if x == COLUMNS:
                x, y = 0, y + HEIGHT
            yield panel(number, x, y, title, unit, curves)
            number, x = number + 1, x + WIDTH
        y += HEIGHT


def variable(name, query):
    """A variable with the values of a label."""
    return {"name": name, "type": "query", "datasource": DATASOURCE, "query": query, "refresh": 2,
            "includeAll": True, "multi": True, "allValue": ".+", "current": {"text": "All", "value": "$__all"}}


print(json.dumps({
    "uid": "sluice", "title": "Sluice", "tags": ["sluice"], "timezone": "browser", "schemaVersion": 39,
    "refresh": "30s", "time": {"from": "now-3h", "to": "now"},
    "templating": {"list": [
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
        variable("job", "label_values(sluice_origin_fetches, job)"),
        variable("instance", 'label_values(sluice_origin_fetches{job=~"$job"}, instance)'),
    ]},
    "panels": list(panels()),
}, indent=1))
