#!/usr/bin/env python3
"""Runs every test program of the workspace, as many side by side as there are cores, and every example in its
documentation: what `cargo test --workspace --all-features` runs one after the other. In a process NVRTC compiles one
program at a time, so a test program that compiles kernels leaves cores idle. With a GPU they run one after the other:
some fill its memory.

usage: scripts/test.py [PART OF A NAME...]
"""

import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import time

# They take longest, so they begin first.
LONG = ["conformance", "ui", "mutants", "tuning", "products", "device_factors", "compile", "tune", "functions", "formats"]
CARGO = os.environ.get("CARGO", "cargo")
WORKSPACE = ["--workspace", "--all-features"]


def built():
    """Name, package and path of every test program, built where it must be."""
    command = [CARGO, "test", *WORKSPACE, "--no-run", "--message-format=json-render-diagnostics"]
    building = subprocess.run(command, stdout=subprocess.PIPE)
    if building.returncode != 0:
        sys.exit(building.returncode)
    for line in building.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            kind = message["target"]["kind"][0]
            if kind not in ("bench", "example"):
                package = os.path.dirname(message["manifest_path"])
                source = os.path.relpath(message["target"]["src_path"], package)
                name = f"{os.path.basename(package) if kind != 'test' else ''} {source}".strip()
                yield name, message["target"]["name"], package, message["executable"]


def run(job):
    """Runs a program: its name, whether it passed, what it printed, and for how many seconds it ran."""
    name, command, package, environment = job
    started = time.monotonic()
    done = subprocess.run(
        command, cwd=package, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    )
    return name, done.returncode == 0, done.stdout.decode(errors="replace"), time.monotonic() - started


def main():
    wanted = sys.argv[1:]
    # Tests of procedural macros are linked to libraries of the compiler.
    printed = subprocess.run(["rustc", "--print", "target-libdir"], stdout=subprocess.PIPE, check=True, text=True)
    libraries = [printed.stdout.strip(), os.environ.get("LD_LIBRARY_PATH")]
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries))}
    order = lambda program: LONG.index(program[1]) if program[1] in LONG else len(LONG)
    jobs = [
        (name, [path], package, {**environment, "CARGO_MANIFEST_DIR": package})
        for name, _, package, path in sorted(built(), key=order)
    ]
    jobs.insert(1, ("documentation", [CARGO, "test", *WORKSPACE, "--doc"], os.getcwd(), dict(os.environ)))
    jobs = [job for job in jobs if not wanted or any(part in job[0] for part in wanted)]
    failed = []
    has_gpu = glob.glob("/dev/nvidia[0-9]*") or glob.glob("/dev/dxg") or os.environ.get("SPMV_REQUIRE_GPU") == "1"
    at_once = 1 if has_gpu else os.cpu_count()
    print(f"{len(jobs)} test programs, {at_once} at a time", flush=True)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, job) for job in jobs]):
            name, passed, printed, seconds = done.result()
            if not passed:
                failed.append(name)
                print(f"\n{printed}")
            print(f"{'passed' if passed else 'FAILED'} {seconds:7.1f} s  {name}", flush=True)
    print(f"{len(jobs)} test programs, {len(failed)} failed{''.join(f': {name}' for name in failed)}")
    return 1 if failed or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
