#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chart.py PROGRAM FOLDER: completes the chart in FOLDER, a copy of envoy/chart, with parts that have another source.

The rules, the alerts and the dashboard come from envoy/observability. The schema of the values gets the schema of the
sites and the names of the settings from PROGRAM, the entry point.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OBSERVABILITY = ("rules.yaml", "alerts.yaml", "dashboard.json")
# The settings that other values set, or that the file of sites replaces.
OTHER_VALUES = re.compile(
    r"SLUICE_(ACCESS|BIND|CACHE|CACHE_DIR|CACHE_MAX_BYTES|CACHE_MAX_ENTRIES|CACHE_RESERVE|CONCURRENCY|DRAIN_SECONDS"
    r"|EDGE_PORT|EDGE_TLS_PORT|ENVOY|HTTP3|HTTP3_PORT|METRICS_BIND|METRICS_PORT|MINIO|NATIVE|ORIGIN|ORIGIN_KEEPALIVE"
    r"|PEERS|PEER_BIND|PEER_PORT|POLICY|PURGE_BIND|PURGE_PORT|RUNTIME|S3_ADDRESSING|S3_ENDPOINT|SITES|STATE|TLS_CERT"
    r"|TLS_KEY|WASM|WATCH)"
    r"|CREDENTIALS_DIRECTORY|SSL_CERT_FILE"
)


def printed(program, *arguments):
    """The JSON document that the program prints, with patterns for Helm."""
    text = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    # Go's regular expressions count to 1000 at most. The edge itself refuses longer texts.
    return json.loads(re.sub(r"\{0,[0-9]{4,}\}", "*", text))


def complete(schema, sites, settings):
    """Completes the schema of the values with the schema of the file of sites and with the list of settings."""
    for name, definition in sites["$defs"].items():
        # NB: no definition of the values may have the name of one of the sites.
        assert name not in schema["$defs"], name
        schema["$defs"][name] = definition
    schema["properties"].update(sites["properties"])
    # The chart itself reports an empty list, so that its own default is valid.
    schema["properties"]["sites"].pop("minItems", None)
    feed = sites["$defs"]["edge"]["properties"]["purge"]["properties"]["feed"]
    schema["properties"]["purge"]["properties"]["feed"] = feed
    free = [s for s in settings if s["type"] != "secret" and not OTHER_VALUES.fullmatch(s["name"])]
    schema["properties"]["settings"] = {
        "type": "object",
        "properties": {s["name"]: {"type": "string", "description": s["meaning"]} for s in free},
        "additionalProperties": False,
    }


def main():
    """Completes the chart."""
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    (folder / "observability").mkdir()
    for name in OBSERVABILITY:
        shutil.copyfile(ROOT / "envoy/observability" / name, folder / "observability" / name)
    path = folder / "values.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    complete(schema, printed(program, "schema", "sites"), printed(program, "settings", "--format", "json"))
    path.write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
