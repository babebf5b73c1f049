#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""variants.py VARIANT...: the CPU time of a hit of 10,000 bytes, of one change of the edge at a time; with MISSES=1, of
a miss.

A VARIANT is "edge", as `sluice render` has it, or one or more of the changes below and paths of Wasm modules, joined
by "+". All run at the same time and take turns for a second each, ROUNDS rounds (15); the ratios are to the first one,
round by round. That holds on a machine that is not idle, where the microseconds by themselves do not.
"""

import contextlib
import http.server
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import yaml

BYTES = 10_000
CONNECTIONS = 8
# Requests of a turn on each connection, each for an object that nobody has asked for.
MISSES = 60


def named(name, among):
    """The one of this name."""
    return next(one for one in among if one["name"] == name)


def connection_manager(config, listener="edge"):
    """The connection manager of the clients' listener, or of that of the hop to the origin."""
    chain = named(listener, config["static_resources"]["listeners"])["filter_chains"][0]
    return chain["filters"][0]["typed_config"]


def filters(config):
    """The HTTP filters of all listeners."""
    for listener in config["static_resources"]["listeners"]:
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        yield from manager["http_filters"]


def without(config, *names):
    """Leaves filters out of the clients' listener."""
    manager = connection_manager(config)
    manager["http_filters"] = [one for one in manager["http_filters"] if one["name"] not in names]


def route(config, **action):
    """Gives the clients' listener one route."""
    host = connection_manager(config)["route_config"]["virtual_hosts"][0]
    host["routes"] = [{"match": {"prefix": "/"}, **action}]


def edge(_):
    """As it comes."""


def bare(config):
    """Envoy and its cache, without Sluice's filter and what is there for it."""
    without(config, "sluice.edge")
    connection_manager(config).pop("early_header_mutation_extensions")
    route(config, route={"cluster": "origin_server"})


def direct(config):
    """Envoy's own direct_response."""
    without(config, "sluice.edge", "cache", "health_check")
    connection_manager(config).pop("early_header_mutation_extensions")
    connection_manager(config)["route_config"]["max_direct_response_body_size_bytes"] = BYTES
    route(config, direct_response={"status": 200, "body": {"inline_string": "x" * BYTES}})


def no_hot_tier(config):
    """HOT_BYTES=0."""
    for one in filters(config):
        if one["name"] == "sluice.edge":
            value = one["typed_config"]["config"]["configuration"]
            policy = json.loads(value["value"])
            policy["hot"] = {"max_bytes": 0}
            value["value"] = json.dumps(policy)


def memory_store(config):
    """Envoy's unbounded memory cache."""
    store = "type.googleapis.com/envoy.extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig"
    for one in filters(config):
        if one["name"] == "cache":
            one["typed_config"]["typed_config"] = {"@type": store}


def no_stats(config):
    """No statistics at all."""
    config["stats_config"] = {"stats_matcher": {"reject_all": True}}


def all_stats(config):
    """STATS=all."""
    config.pop("stats_config")


def no_overload_manager(config):
    """No bounds for connections and memory."""
    config.pop("overload_manager")


def no_timeouts(config):
    """No timers for a request."""
    for name in ("request_timeout", "request_headers_timeout", "stream_idle_timeout"):
        connection_manager(config)[name] = "0s"


def http1(config):
    """The protocol is not guessed."""
    connection_manager(config)["codec_type"] = "HTTP1"


def no_health_check(config):
    """No health check by a worker."""
    without(config, "health_check")


def cluster(config, name):
    """A cluster."""
    return named(name, config["static_resources"]["clusters"])


def protocol_options(config, name):
    """How a cluster speaks HTTP."""
    options = cluster(config, name)["typed_extension_protocol_options"]
    return options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]


def http2_hop(config):
    """One connection of each worker's to the hop, rather than one for each request."""
    connection_manager(config, "origin")["codec_type"] = "HTTP2"
    protocol_options(config, "origin")["explicit_http_config"] = {"http2_protocol_options": {}}


def no_hop(config):
    """Cluster origin is the origin itself: no guard, no second try, no response where there is none."""
    server = cluster(config, "origin_server")["load_assignment"]
    cluster(config, "origin")["load_assignment"] = server | {"cluster_name": "origin"}


def thin_hop(config):
    """No guard and nothing stripped."""
    hop = connection_manager(config, "origin")
    hop["http_filters"] = [named("router", hop["http_filters"])]
    protocol_options(config, "origin_server").pop("http_filters")


def no_next_turn(config):
    """The cache then does not survive the answer of a dead VM."""
    options = protocol_options(config, "origin")
    options["http_filters"] = [one for one in options["http_filters"] if one["name"] != "next_turn"]


CHANGES = {
    change.__name__.replace("_", "-"): change
    for change in (
        edge,
        bare,
        direct,
        no_hot_tier,
        memory_store,
        no_stats,
        all_stats,
        no_overload_manager,
        no_timeouts,
        http1,
        no_health_check,
        http2_hop,
        no_hop,
        thin_hop,
        no_next_turn,
    )
}


class Server(http.server.ThreadingHTTPServer):
    """A server for many connections at a time."""

    request_queue_size = 1024


class Origin(http.server.BaseHTTPRequestHandler):
    """An origin that has an object under every name."""

    protocol_version = "HTTP/1.1"
    # Headers and body in one write.
    wbufsize = -1

    def do_GET(self):
        """Answers with an object."""
        self.send_response(200)
        headers = {"content-type": "text/plain", "cache-control": "max-age=3600", "etag": '"1"'}
        for name, value in {**headers, "content-length": BYTES}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(bytes(BYTES))

    def log_message(self, *_):
        """Nobody reads it."""


def free_port():
    """A port that nobody has."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Variant:
    """A running Envoy."""

    def __init__(self, name, origin, folder, runner=(), workers=2):
        self.name = name
        parts = name.split("+")
        modules = [part for part in parts if part.endswith(".wasm")]
        unknown = [part for part in parts if part not in CHANGES and part not in modules]
        if unknown:
            known = ", ".join(CHANGES)
            sys.exit(f"variants.py: no such change: {unknown[0]}; there are {known}, and paths of .wasm files")
        self.port = free_port()
        own = {"ORIGIN": origin, "EDGE_PORT": str(self.port), "ADMIN_PORT": str(free_port()), "ACCESS_LOG": "off"}
        own |= {"SLUICE_STATE": folder, "CACHE_DIR": f"{folder}/cache"}
        own |= {"SLUICE_WASM": str(pathlib.Path(modules[0]).resolve())} if modules else {}
        render = [os.environ["SLUICE_BIN"], "render"]
        config = yaml.safe_load(subprocess.run(render, env=os.environ | own, check=True, capture_output=True).stdout)
        for part in parts:
            if part in CHANGES:
                CHANGES[part](config)
        file = pathlib.Path(folder, "envoy.yaml")
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        envoy = [*runner, os.environ["SLUICE_ENVOY"], "--disable-hot-restart", "--log-level", "error"]
        self.process = subprocess.Popen([*envoy, "--concurrency", str(workers), "--config-path", str(file)])
        self.url = f"http://127.0.0.1:{self.port}/object"
        self.folder = folder
        self.missed = 0
        self.costs = []

    def ready(self):
        """Waits until it answers."""
        for _ in range(600):
            with contextlib.suppress(OSError), urllib.request.urlopen(self.url):
                return
            time.sleep(0.05)
        sys.exit(f"variants.py: {self.name} does not answer")

    def cpu_seconds(self):
        """What all its threads have taken."""
        threads = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9

    def load(self):
        """h2load's arguments: all connections ask for one object for a second, or each for others, each once."""
        if not misses():
            return [["-c", str(CONNECTIONS), "-D", "1", self.url]]
        return [["-c", "1", "-n", str(MISSES), "-i", self.fresh_urls(number)] for number in range(CONNECTIONS)]

    def fresh_urls(self, connection):
        """A file of objects that nobody has asked for."""
        file = pathlib.Path(self.folder, f"urls-{connection}")
        urls = (f"{self.url}/{number}\n" for number in range(self.missed, self.missed + MISSES))
        file.write_text("".join(urls), encoding="ascii")
        self.missed += MISSES
        return str(file)

    def measure(self):
        """Asks; the microseconds of CPU time of an answer."""
        before = self.cpu_seconds()
        commands = [["h2load", "--h1", "-t", "1", *load] for load in self.load()]
        loads = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
        said = "".join(load.communicate()[0] for load in loads)
        answers = sum(map(int, re.findall(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", said)))
        return (self.cpu_seconds() - before) * 1e6 / answers


def store_folder(folder):
    """Makes the store's folder, as the entry point does when it starts."""
    pathlib.Path(folder, "cache", "entries").mkdir(parents=True)


def misses():
    """Whether misses are measured, rather than hits."""
    return os.environ.get("MISSES", "") not in ("", "0")


def tell(variants):
    """The medians, and the ratios to the first."""
    answer = "miss" if misses() else "hit "
    print(f"{'variant':44} us/{answer} ratio  by round   (load average {os.getloadavg()[0]:.1f})")
    for variant in variants:
        ratios = sorted(own / first for own, first in zip(variant.costs, variants[0].costs, strict=True))
        middle, ends = statistics.median(ratios), f"{ratios[0]:.2f}-{ratios[-1]:.2f}"
        print(f"{variant.name[-44:]:44} {statistics.median(variant.costs):6.1f}  {middle:5.2f}  {ends}")


def main(names):
    """Measures these variants."""
    server = Server(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    variants = []
    with tempfile.TemporaryDirectory(prefix="sluice-variants-") as folder:
        try:
            for number, name in enumerate(names):
                own = pathlib.Path(folder, str(number))
                store_folder(own)
                variants.append(Variant(name, origin, str(own)))
            for variant in variants:
                variant.ready()
                variant.measure()
            for _ in range(int(os.environ.get("ROUNDS", "15"))):
                for variant in variants:
                    variant.costs.append(variant.measure())
            tell(variants)
        finally:
            for variant in variants:
                variant.process.terminate()
                variant.process.wait()


if __name__ == "__main__":
    main(sys.argv[1:] or sys.exit(__doc__))
