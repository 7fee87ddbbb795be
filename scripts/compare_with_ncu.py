#!/usr/bin/env python3
"""Sets what the simulator counts beside what Nsight Compute reads off the hardware.

usage: compare_with_ncu.py SPMV MATRIX.mtx [MATRIX.mtx ...] [--record FOLDER]

SPMV is the command, on a machine with a GPU and ncu. Every algorithm runs on every matrix, on the GPU under ncu and
on the simulator, with the kernel of one compile. Requests, sectors and atomics must agree within 2 %. Warp execution
efficiency is shown beside, not judged: ptxas turns short branches into predicated instructions, which the hardware
counts as executed by the whole warp, and schedules loops otherwise than the PTX says.
"""
import argparse
import csv
import datetime
import io
import json
import os
import subprocess
import sys

TOLERANCE = 0.02

# name of the figure, metrics of ncu that are added up, key of the simulator's report
FIGURES = [
    ("load requests", ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"], "global_load_requests"),
    ("load sectors", ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"], "global_load_sectors"),
    ("store requests", ["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"], "global_store_requests"),
    ("store sectors", ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"], "global_store_sectors"),
    (
        "atomic requests",
        ["l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"],
        "global_atomic_requests",
    ),
]
EFFICIENCY = "smsp__thread_inst_executed_per_inst_executed.ratio"
ALGORITHMS = ["csr_scalar", "csr_vector", "light_vector"]


def command(spmv, matrix, algorithm, device):
    return [spmv, "run", matrix, "--algorithm", algorithm, "--device", device, "--repeat", "0", "--json"]


def measured(spmv, matrix, algorithm):
    metrics = [metric for _, parts, _ in FIGURES for metric in parts] + [EFFICIENCY]
    ncu = ["ncu", "--clock-control", "none", "--csv", "-k", "regex:spmv_", "-c", "1", "--metrics", ",".join(metrics)]
    run = subprocess.run(ncu + command(spmv, matrix, algorithm, "cuda"), capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    values = {row["Metric Name"]: float(row["Metric Value"].replace(",", "")) for row in rows if row.get("Metric Value")}
    missing = [metric for metric in metrics if metric not in values]
    if run.returncode or missing:
        sys.exit(f"ncu gave no {', '.join(missing)} for {algorithm} on {matrix}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return values


def simulated(spmv, matrix, algorithm):
    run = subprocess.run(command(spmv, matrix, algorithm, "sim") + ["--report"], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"the simulator failed on {matrix}:\n{run.stderr}")
    return json.loads(run.stdout)["report"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("spmv")
    parser.add_argument("matrices", nargs="+")
    parser.add_argument("--record", metavar="FOLDER")
    arguments = parser.parse_args()
    doctor = json.loads(subprocess.run([arguments.spmv, "doctor", "--json"], capture_output=True, text=True).stdout)
    figures, apart = [], []
    print(f"{'matrix':<22} {'kernel':<13} {'figure':<16} {'GPU':>12} {'simulator':>12} {'apart':>8}")
    for matrix in arguments.matrices:
        for algorithm in ALGORITHMS:
            gpu, sim = measured(arguments.spmv, matrix, algorithm), simulated(arguments.spmv, matrix, algorithm)
            name = os.path.basename(matrix)
            for figure, parts, key in FIGURES:
                real, counted = sum(gpu[part] for part in parts), sim[key]
                difference = (counted - real) / max(real, 1)
                judged = abs(difference) <= TOLERANCE
                print(f"{name:<22} {algorithm:<13} {figure:<16} {real:>12,.0f} {counted:>12,} {difference:>7.2%}"
                      f"{'' if judged else '  APART'}")
                if not judged:
                    apart.append(f"{figure} of {algorithm} on {name}")
                figures.append({"matrix": name, "kernel": algorithm, "figure": figure, "gpu": real,
                                "simulator": counted, "difference": difference, "within": judged})
            real, counted = gpu[EFFICIENCY] / 32, sim["warp_execution_efficiency"]
            print(f"{name:<22} {algorithm:<13} {'warp efficiency':<16} {real:>12.1%} {counted:>12.1%}")
            figures.append({"matrix": name, "kernel": algorithm, "figure": "warp execution efficiency", "gpu": real,
                            "simulator": counted})
    if arguments.record:
        device = next(device for device in doctor["devices"] if device.get("kind", "cuda") == "cuda")
        gpu = "".join(c if c.isalnum() else "-" for c in device["name"].lower())
        folder = os.path.join(arguments.record, gpu)
        os.makedirs(folder, exist_ok=True)
        record = {
            "benchmark": "simulator against ncu",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "commit": os.environ.get("SPMV_COMMIT", "unknown"),
            "gpu": device["name"],
            "driver": doctor.get("driver"),
            "nvrtc": doctor.get("nvrtc"),
            "ncu": subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout.strip().splitlines()[-1],
            "tolerance": TOLERANCE,
            "figures": figures,
        }
        path = os.path.join(folder, "simulator.json")
        with open(path, "w") as file:
            json.dump(record, file, indent=2)
            file.write("\n")
        print(f"recorded in {path}")
    if apart:
        sys.exit("apart by more than 2 %: " + "; ".join(apart))
    print(f"{len(figures)} figures of {len(arguments.matrices) * len(ALGORITHMS)} pairs; all judged ones agree within 2 %")


if __name__ == "__main__":
    main()
