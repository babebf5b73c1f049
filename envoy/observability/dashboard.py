#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dashboard.json, which Grafana imports, from the panels below: dashboard.py > dashboard.json

A row is a title and its panels; a panel is a title, a unit of Grafana's and one line for each curve: the legend and
the query. $job, $site and $instance are the dashboard's variables.
"""
import json

EDGE = 'job=~"$job",instance=~"$instance"'
SITE = 'site=~"$site"'
CLIENTS = 'envoy_http_conn_manager_prefix!~"origin|sluice.+|purge|metrics|admin"'
ORIGIN = 'envoy_http_conn_manager_prefix="origin"'


def rate(metric, *more):
    """The rate of a counter, summed over edges and their parts."""
    selector = ",".join([EDGE, *more])
    return f"sum(rate({metric}{{{selector}}}[$__rate_interval]))"


def by(label, metric, *more):
    """The rate for each value of a label."""
    return rate(metric, *more).replace("sum(", f"sum by ({label}) (", 1)


def gauge(metric, *more):
    """A gauge, summed over edges."""
    selector = ",".join([EDGE, *more])
    return f"sum({metric}{{{selector}}})"


def percentiles(metric, *more):
    """Median, p90 and p99 of a histogram."""
    buckets = by("le", f"{metric}_bucket", *more)
    return [(f"p{p}", f"histogram_quantile({p / 100}, {buckets})") for p in (50, 90, 99)]


ROWS = [
    ("Is it well?", [
        ("Hit ratio", "percentunit", [("requests {{site}}", 'sluice:hit_ratio:rate5m{job=~"$job",site=~"$site"}'),
                                      ("bytes {{site}}",
                                       'sluice:byte_hit_ratio:rate5m{job=~"$job",site=~"$site"}')]),
        ("Errors that clients get", "percentunit", [("5xx", 'sluice:error_ratio:rate5m{job=~"$job"}')]),
        ("Origin offload", "percentunit",
         [("requests {{site}}", 'sluice:origin_offload:rate5m{job=~"$job",site=~"$site"}')]),
        ("Alerts", "short", [("{{alertname}}", 'ALERTS{alertstate="firing",alertname=~"Sluice.*"} or vector(0)')]),
    ]),
    ("Clients", [
        ("Requests by result", "reqps", [("{{result}}", by("result", "sluice_requests_total", SITE))]),
        ("Responses by class", "reqps",
         [("{{envoy_response_code_class}}xx",
           by("envoy_response_code_class", "envoy_http_downstream_rq_xx", CLIENTS))]),
        ("Time per request", "ms", percentiles("envoy_http_downstream_rq_time", CLIENTS)),
        ("Time to the first byte, p99", "s",
         [("{{result}} {{site}}", 'sluice:first_byte_seconds:p99_5m{job=~"$job",site=~"$site"}')]),
        ("Bytes", "Bps", [("to clients", rate("sluice_bytes_sent_total", SITE)),
                          ("from the origin", rate("sluice_origin_bytes_total", SITE)),
                          ("saved", 'sum(sluice:saved_bytes:rate5m{job=~"$job",site=~"$site"})')]),
        ("Connections", "short", [("{{envoy_http_conn_manager_prefix}}",
                                   f"sum by (envoy_http_conn_manager_prefix) "
                                   f"(envoy_http_downstream_cx_active{{{EDGE},{CLIENTS}}})")]),
    ]),
    ("Coalescing", [
        ("Waiting now", "short", [("requests", gauge("sluice_waiting_requests")),
                                   ("keys", gauge("sluice_inflight_keys"))]),
        ("Time that requests waited", "s",
         [(f"p{p}", f'sluice:coalescing_wait_seconds:p{p}_5m{{job=~"$job"}}') for p in (50, 99)]),
        ("Leaders and followers", "reqps", [("led", rate("sluice_flights_led_total")),
                                            ("parked", rate("sluice_followers_parked_total")),
                                            ("failed", rate("sluice_requests_total", 'result="failed"'))]),
        ("What went otherwise", "reqps", [("timed out", rate("sluice_wait_timeouts_total")),
                                          ("handed over", rate("sluice_handovers_total")),
                                          ("not shared", rate("sluice_unshared_total")),
                                          ("bound reached", rate("sluice_limits_reached_total")),
                                          ("host errors", rate("sluice_host_errors_total"))]),
    ]),
    ("Origin", [
        ("Requests to the origin", "reqps", [("all", rate("sluice_origin_requests_total")),
                                             ("refreshes", rate("sluice_refreshes_total")),
                                             ("failed refreshes", rate("sluice_refresh_failures_total")),
                                             ("given up", rate("sluice_origin_overdue_total"))]),
        ("Answers by class", "reqps",
         [("{{envoy_response_code_class}}xx", by("envoy_response_code_class", "envoy_http_downstream_rq_xx", ORIGIN))]),
        ("Time of the origin", "ms", percentiles("envoy_http_downstream_rq_time", ORIGIN)),
        ("Time to the origin's first byte, p99", "s",
         [("{{site}}", 'sluice:origin_first_byte_seconds:p99_5m{job=~"$job",site=~"$site"}')]),
        ("Connections to the origin", "short",
         [("open", f'sum(envoy_cluster_upstream_cx_active{{{EDGE},envoy_cluster_name=~"origin_server.*"}})'),
          ("failed", rate("envoy_cluster_upstream_cx_connect_fail", 'envoy_cluster_name=~"origin_server.*"')),
          ("retried requests", rate("envoy_cluster_upstream_rq_retry", 'envoy_cluster_name=~"origin_server.*"'))]),
    ]),
    ("Store", [
        ("Fullness", "percentunit",
         [("{{instance}}", 'sluice:cache_fullness:ratio{job=~"$job",instance=~"$instance"}')]),
        ("Size", "bytes", [("stored", gauge("sluice_cache_bytes", SITE)),
                           ("limit", gauge("sluice_cache_limit_bytes")),
                           ("in the workers' memory", gauge("sluice_hot_bytes"))]),
        ("Objects", "short", [("stored", gauge("sluice_cache_objects", SITE)),
                              ("limit", gauge("sluice_cache_limit_objects")),
                              ("known to be fresh", gauge("sluice_known_keys")),
                              ("in the workers' memory", gauge("sluice_hot_objects"))]),
        ("Out of the workers' memory", "ops", [("hits", rate("sluice_hot_hits_total")),
                                               ("taken in", rate("sluice_hot_admissions_total")),
                                               ("given up", rate("sluice_hot_evictions_total"))]),
        ("Evictions", "ops", [("{{reason}}", by("reason", "sluice_cache_evictions_total", SITE)),
                              ("asked for again", rate("sluice_unexpected_misses_total"))]),
        ("Purges", "ops", [("purges", rate("sluice_purges_total")), ("refused", rate("sluice_purges_refused_total")),
                           ("SNS refused", rate("sluice_sns_messages_total", 'result="refused"')),
                           ("SNS not verified", rate("sluice_sns_messages_total", 'result="unverified"')),
                           ("revalidations", rate("sluice_purge_revalidations_total"))]),
    ]),
    ("Large objects", [
        ("Slices", "ops", [("{{result}}", by("result", "sluice_slices_total", SITE))]),
        ("Bytes of slices", "Bps", [("{{result}}", by("result", "sluice_slice_bytes_total", SITE))]),
        ("Requests in slices", "reqps", [("all", rate("sluice_sliced_requests_total", SITE)),
                                         ("in one piece", rate("sluice_sliced_passed_total", SITE)),
                                         ("waited for their turn", rate("sluice_sliced_queued_total", SITE)),
                                         ("cut", rate("sluice_sliced_cut_total", SITE))]),
        ("Responses in slices now", "short", [("under way", gauge("sluice_sliced_responses")),
                                              ("known objects", gauge("sluice_slice_indexes"))]),
    ]),
    ("Process", [
        ("Memory", "bytes", [("{{instance}}", f"envoy_server_memory_physical_size{{{EDGE}}}")]),
        ("Filter begun anew", "ops", [("edge's VM", rate("envoy_wasm_edge_vm_reload")),
                                      ("origin's VM", rate("envoy_wasm_origin_vm_reload")),
                                      ("native worker", rate("sluice_workers_lost_total"))]),
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
            "includeAll": True, "multi": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}}


print(json.dumps({
    "uid": "sluice", "title": "Sluice", "tags": ["sluice"], "timezone": "browser", "schemaVersion": 39,
    "refresh": "30s", "time": {"from": "now-3h", "to": "now"},
    "templating": {"list": [
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
        variable("job", "label_values(sluice_requests_total, job)"),
        variable("site", 'label_values(sluice_requests_total{job=~"$job"}, site)'),
        variable("instance", 'label_values(sluice_requests_total{job=~"$job"}, instance)'),
    ]},
    "panels": list(panels()),
}, indent=1))
