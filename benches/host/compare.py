#!/usr/bin/env python3
"""Compares spmv-matrix with others on the host: reading Matrix Market files, and y = A x.

    cargo build --release --manifest-path benches/host/Cargo.toml
    python3 -m venv .venv && .venv/bin/pip install numpy scipy fast_matrix_market
    .venv/bin/python benches/host/compare.py read [FILE.mtx ...]
    .venv/bin/python benches/host/compare.py product [FILE.mtx ...]

Both sides run in turn, round after round, on the same files and matrices; what is printed is the median.
Without files, `read` and `product` use generated matrices. Records go to benches/record/host/.
"""

import argparse
import csv
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORD = HERE.parent / "record" / "host"

# What is read where no file is named: name, class, parameters.
READ = [
    ("stencil_5", "stencil_5", {"nx": 1500, "ny": 1350}),
    ("uniform", "uniform", {"rows": 1_000_000, "cols": 1_000_000, "per_row": 10}),
    ("rmat", "rmat", {"scale": 19, "per_row": 20}),
    ("rail", "rail", {"rows": 2000, "cols": 1_000_000, "per_row": 5000}),
]

# What is multiplied where no file is named.
PRODUCT = [
    ("small stencil_5", "stencil_5", {"nx": 100, "ny": 100}),
    ("small banded", "banded", {"n": 5000, "lower": 20, "upper": 20}),
    ("tridiagonal", "tridiagonal", {"n": 3_000_000}),
    ("stencil_5", "stencil_5", {"nx": 1500, "ny": 1500}),
    ("stencil_27", "stencil_27", {"nx": 70, "ny": 70, "nz": 70}),
    ("fem", "fem", {"nx": 30, "ny": 30, "nz": 30}),
    ("gaussian 100", "gaussian", {"n": 1_000_000, "sigma": 100}),
    ("gaussian 1e4", "gaussian", {"n": 1_000_000, "sigma": 1e4}),
    ("uniform", "uniform", {"rows": 1_000_000, "cols": 1_000_000, "per_row": 8}),
    ("rmat", "rmat", {"scale": 19, "per_row": 16}),
    ("power_law", "power_law", {"n": 1_000_000}),
    ("road", "road", {"n": 3_000_000}),
    ("circuit", "circuit", {"n": 1_000_000}),
    ("giant_row", "giant_row", {"n": 3_000_000, "giant": 2_000_000}),
    ("rail", "rail", {"rows": 4000, "cols": 1_000_000, "per_row": 2500}),
    ("tall", "tall", {"rows": 4_000_000, "cols": 500_000}),
    ("chemistry", "chemistry", {"n": 60_000, "per_row": 150}),
    ("dense", "dense", {"rows": 2500, "cols": 2500}),
]


class Host:
    """The program that runs the Rust side."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            sys.exit(f"{request}: {answer['error']}")
        return answer


def cpu():
    try:
        with open("/proc/cpuinfo") as info:
            return next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def about(**versions):
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **versions,
    }


def lock_version(package):
    lock = (HERE / "Cargo.lock").read_text().split("[[package]]")
    for entry in lock:
        if f'name = "{package}"\n' in entry:
            return entry.split('version = "')[1].split('"')[0]
    return "?"


def timed(action):
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def compare_read(host, arguments):
    import fast_matrix_market as fmm
    import scipy

    threads = arguments.threads
    fmm.PARALLELISM = threads
    records = []
    with tempfile.TemporaryDirectory() as folder:
        files = [(Path(path).stem, path) for path in arguments.files]
        for name, matrix_class, settings in [] if files else READ:
            if arguments.only not in name:
                continue
            path = f"{folder}/{name}.mtx"
            host.ask(do="make", path=path, set=settings, **{"class": matrix_class})
            files.append((name, path))
        print(f"{'file':<18}{'MB':>7}{'nnz':>12}{'spmv s':>9}{'fmm s':>9}{'fmm+csr s':>11}{'ratio':>7}{'ratio csr':>11}")
        for name, path in files:
            ours, coo, csr = [], [], []
            for _ in range(arguments.rounds + 1):
                answer = host.ask(do="read", path=path, threads=threads)
                ours.append(answer["seconds"])
                seconds, matrix = timed(lambda: fmm.mmread(path))
                coo.append(seconds)
                more, matrix = timed(lambda: matrix.tocsr())
                csr.append(seconds + more)
                assert matrix.nnz == answer["nnz"], (matrix.nnz, answer)
                del matrix
            # The first round warms caches up.
            ours, coo, csr = ours[1:], coo[1:], csr[1:]
            record = {
                "file": name,
                "bytes": os.path.getsize(path),
                "nnz": answer["nnz"],
                "threads": threads,
                "spmv_seconds": statistics.median(ours),
                "fmm_coo_seconds": statistics.median(coo),
                "fmm_csr_seconds": statistics.median(csr),
                "spmv_spread": (max(ours) - min(ours)) / statistics.median(ours),
                "fmm_coo_spread": (max(coo) - min(coo)) / statistics.median(coo),
            }
            records.append(record)
            print(
                f"{name:<18}{record['bytes'] / 1e6:>7.0f}{record['nnz']:>12}{record['spmv_seconds']:>9.3f}"
                f"{record['fmm_coo_seconds']:>9.3f}{record['fmm_csr_seconds']:>11.3f}"
                f"{record['fmm_coo_seconds'] / record['spmv_seconds']:>7.2f}"
                f"{record['fmm_csr_seconds'] / record['spmv_seconds']:>11.2f}",
                flush=True,
            )
    return records, about(fast_matrix_market=fmm.__version__, scipy=scipy.__version__)


def compare_product(host, arguments):
    import numpy
    import scipy
    import scipy.sparse

    records = []
    matrices = [(Path(path).stem, {"path": path}) for path in arguments.files]
    if not matrices:
        matrices = [(name, {"class": kind, "set": settings}) for name, kind, settings in PRODUCT
                    if arguments.only in name]
    all_threads = sorted({1, arguments.threads})
    columns = [f"spmv {threads}t" for threads in all_threads] + ["sprs", "faer", "scipy"]
    print("ms".ljust(18) + "value".rjust(6) + "nnz".rjust(11) + "".join(c.rjust(9) for c in columns)
          + "1t ratio".rjust(10) + "ratio".rjust(8) + "scaling".rjust(9))
    with tempfile.TemporaryDirectory() as folder:
        for name, how in matrices:
            facts = host.ask(do="load", **how)
            host.ask(do="export", folder=folder)
            load = lambda file, kind: numpy.fromfile(f"{folder}/{file}", dtype=kind)
            # SciPy works with signed indices.
            indices = load("col_indices.u32", numpy.int32), load("row_offsets.u32", numpy.int32)
            for value in ["f64", "f32"]:
                kind = {"f64": numpy.float64, "f32": numpy.float32}[value]
                shape = facts["rows"], facts["cols"]
                matrix = scipy.sparse.csr_matrix(
                    (load("values.f64", numpy.float64).astype(kind), *indices), shape=shape, copy=False)
                x = load("x.f64", numpy.float64).astype(kind)
                # The least of several runs: what else the machine does meanwhile should not count.
                times = max(5, min(200, 4_000_000 // max(facts["nnz"], 1)))
                seconds = {column: [] for column in columns}
                sums = {}
                for round_ in range(arguments.rounds + 1):
                    for column in columns:
                        if column == "scipy":
                            runs = [timed(lambda: matrix @ x) for _ in range(times)]
                            taken = [run[0] for run in runs]
                            total = float(runs[-1][1].astype(numpy.float64).sum())
                        else:
                            of, *threads = column.split()
                            threads = int(threads[0][:-1]) if threads else arguments.threads
                            answer = host.ask(do="product", of=of, threads=threads, times=times, value=value)
                            taken, total = answer["seconds"], answer["sum"]
                        sums[column] = total
                        if round_ > 0:
                            seconds[column].append(min(taken))
                scale = float(numpy.abs(matrix.data.astype(numpy.float64)).sum()) + 1.0
                for column, total in sums.items():
                    assert abs(total - sums["scipy"]) <= 1e-5 * scale, (name, sums)
                median = {column: statistics.median(taken) for column, taken in seconds.items()}
                best = min(median[peer] for peer in ["sprs", "faer", "scipy"])
                most = median[columns[len(all_threads) - 1]]
                one = median["spmv 1t"]
                print(name.ljust(18) + value.rjust(6) + str(facts["nnz"]).rjust(11)
                      + "".join(f"{median[c] * 1e3:9.3f}" for c in columns)
                      + f"{best / one:10.2f}{best / most:8.2f}{one / most:9.2f}", flush=True)
                records.append({
                    "matrix": name, "value": value, **facts, "threads": arguments.threads,
                    **{f"{c.replace(' ', '_')}_seconds": median[c] for c in columns},
                    "best_peer_over_one_thread": best / one,
                    "best_peer_over_all_threads": best / most,
                    "scaling": one / most,
                })
    return records, about(scipy=scipy.__version__, numpy=numpy.__version__,
                          sprs=lock_version("sprs"), faer=lock_version("faer"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["read", "product"])
    parser.add_argument("files", nargs="*", help="Matrix Market files; generated matrices where there are none")
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count; one more goes before")
    parser.add_argument("--only", help="of the generated matrices, those whose name has this in it", default="")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--program", help="the host benchmark's program",
                        default=str(HERE / "target" / "release" / "host-benchmark"))
    parser.add_argument("--record", metavar="NAME", help="write benches/record/host/NAME.json and .csv")
    arguments = parser.parse_intermixed_args()
    host = Host(arguments.program)
    compare = {"read": compare_read, "product": compare_product}[arguments.what]
    records, machine = compare(host, arguments)
    if arguments.record:
        RECORD.mkdir(parents=True, exist_ok=True)
        path = RECORD / arguments.record
        path.with_suffix(".json").write_text(json.dumps({**machine, "results": records}, indent=1) + "\n")
        with open(path.with_suffix(".csv"), "w", newline="") as file:
            writer = csv.DictWriter(file, records[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(records)


if __name__ == "__main__":
    main()
