#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""instructions.py VARIANT...: the instructions of a worker for a hit of 10,000 bytes, of one change of the edge at a
time, as valgrind's callgrind counts them on Envoy; with MISSES=1, for a miss.

A VARIANT is what it is for variants.py. One connection asks, one request after the other, and a run differs from the
next by a thousandth, whatever else the machine does. The kernel's part is not in it. PROFILES=FOLDER keeps callgrind's
files, for callgrind_annotate.
"""

import http.client
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from variants import Origin, Server, Variant, misses, store_folder

# Until V8 has compiled what is hot, for good.
WARM = 1500
COUNTED = 200
CALLGRIND = [
    "valgrind",
    "--quiet",
    "--tool=callgrind",
    "--instr-atstart=no",
    "--separate-threads=yes",
    # V8 writes code.
    "--smc-check=all-non-file",
]
# Else memory is copied by an instruction that counts once a byte.
COPIES = "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000"


def control(variant, *order):
    """Tells callgrind."""
    command = ["callgrind_control", *order, str(variant.process.pid)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def paths():
    """What is asked for: one object, or others, each once."""
    return (f"/object/{number}" for number in itertools.count()) if misses() else itertools.repeat("/object")


def ask(connection, targets, times):
    """Requests on a connection that stays open."""
    for target in itertools.islice(targets, times):
        connection.request("GET", target)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            sys.exit(f"instructions.py: status {response.status}")


def total(profile):
    """The instructions of one thread."""
    lines = profile.read_text(encoding="utf-8").splitlines()
    return max(int(line.split()[1]) for line in lines if line.startswith(("summary:", "totals:")))


def count(name, origin, folder):
    """The instructions of the worker's thread for an answer."""
    store_folder(folder)
    command = [*CALLGRIND, f"--callgrind-out-file={folder}/profile"]
    variant = Variant(name, origin, folder, command, workers=1)
    try:
        variant.ready()
        connection = http.client.HTTPConnection("127.0.0.1", variant.port)
        targets = paths()
        ask(connection, targets, WARM)
        control(variant, "--instr=on")
        ask(connection, targets, 10)
        control(variant, "--zero")
        ask(connection, targets, COUNTED)
        control(variant, "--dump")
    finally:
        variant.process.terminate()
        variant.process.wait()
    return max(total(profile) for profile in pathlib.Path(folder).glob("profile.1-*")) / COUNTED


def main(names):
    """Counts these variants."""
    os.environ["GLIBC_TUNABLES"] = COPIES
    server = Server(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    first = None
    print(f"{'variant':44} thousands  ratio", flush=True)
    with tempfile.TemporaryDirectory(prefix="sluice-instructions-") as temporary:
        for number, name in enumerate(names):
            folder = pathlib.Path(os.environ.get("PROFILES") or temporary, str(number))
            folder.mkdir(parents=True)
            counted = count(name, origin, str(folder))
            first = first or counted
            print(f"{name[-44:]:44} {counted / 1000:9.1f}  {counted / first:5.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or sys.exit(__doc__))
