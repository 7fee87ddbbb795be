#!/usr/bin/env python3
"""Compares what the simulator counts with what Nsight Compute measures, kernel by kernel and matrix by matrix.

usage: compare_with_ncu.py --spmv SPMV [--record FOLDER] [--kernel "NAME KEY=VALUE ..."]... A.mtx B.mtx ...

Each kernel multiplies each matrix twice: on the GPU under `ncu`, and in the simulator, both from the same compile.
Compared are the requests and 32-byte sectors of global loads and stores and the requests of global atomics. A pair
agrees where none of them differs by more than the tolerance; fewer than five pairs that agree make the exit code 1
(2: usage, 4: the machine lacks something).

What the PTX does is what the simulator counts. ptxas unrolls the inner loops of csr_vector and light_vector: groups
of a warp whose rows differ in length then stand in different copies of the body, and their loads, one request in the
PTX, become several. So these pairs agree on matrices with rows of one length and differ on others.

Warp execution efficiency is shown beside it and never fails: it is a property of the machine code, which unrolls,
predicates and merges what stands in the PTX. The kernel light_vector has as many blocks as are resident, so more on
a GPU than in the simulator; each warp that runs out of rows does one fetch that fails, and each block says once
that it has finished. These atomics follow from the grid alone and are taken off on both sides.

SPMV_COMMIT names the commit where this is no checkout.
"""
import argparse
import csv
import datetime
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = [
    "csr_scalar",
    "csr_vector threads_per_vector=8",
    "csr_vector threads_per_vector=32 value=f64 x=f64 y=f64 accumulator=f64",
    "light_vector threads_per_vector=8 rows_per_fetch=1",
]
LEAST_PAIRS = 5

# What ncu measures, by the name that it has in the simulator's report; a sum where there are several.
COMPARED = {
    "global_load_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"],
    "global_load_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
    "global_store_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"],
    "global_store_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    "global_atomic_requests": [
        "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    ],
}
THREADS_AN_INSTRUCTION = "smsp__thread_inst_executed_per_inst_executed.ratio"
THREADS_NOT_PREDICATED_OFF = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
INSTRUCTIONS = "smsp__inst_executed.sum"
GRID, BLOCK = "launch__grid_size", "launch__block_size"
METRICS = [name for names in COMPARED.values() for name in names] + [
    THREADS_AN_INSTRUCTION, THREADS_NOT_PREDICATED_OFF, INSTRUCTIONS, GRID, BLOCK,
]


class Missing(Exception):
    """The machine lacks something."""


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Missing(f"{command[0]}: {error.strerror}")
    if done.returncode != 0:
        raise Missing(f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr.strip()}\n{done.stdout[-2000:]}")
    return done.stdout


def product(arguments, kernel, matrix, device):
    """The command for one kernel on one matrix; the same but for the device."""
    algorithm, *settings = kernel.split()
    command = [arguments.spmv, "run", str(matrix), "--algorithm", algorithm, "--device", device, "--json"]
    for setting in settings:
        command += ["--set", setting]
    return command


def measured(text):
    """The metrics of the first kernel in ncu's CSV, one metric a line."""
    rows = csv.DictReader(io.StringIO("\n".join(line for line in text.splitlines() if line.startswith('"'))))
    metrics = {}
    for row in rows:
        name, value = row.get("Metric Name"), row.get("Metric Value")
        if name and value and name not in metrics:
            metrics[name] = float(value.replace(",", ""))
    absent = [name for name in METRICS if name not in metrics]
    if absent:
        reason = "ncu may not read the counters here (ERR_NVGPUCTRPERM); " if "ERR_NVGPUCTRPERM" in text else ""
        raise Missing(f"{reason}ncu did not give {', '.join(absent)}:\n{text[-2000:]}")
    return metrics


def profile(arguments, kernel, matrix):
    """ncu's metrics of the first product, and what `spmv run` said."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = [
            arguments.ncu, "--csv", "--log-file", str(log), "--clock-control", "none", "--print-units", "base",
            "--metrics", ",".join(METRICS), "--kernel-name", "regex:spmv_", "--launch-count", "1",
        ]
        said = run(command + product(arguments, kernel, matrix, "cuda") + ["--repeat", "0"])
        text = log.read_text() if log.exists() else said
    return measured(text), json_of(said)


def json_of(text):
    """The JSON object in a program's output; ncu may print around it."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise Missing(f"no JSON in:\n{text[-2000:]}")
    return json.loads(text[start:end + 1])


def ending_atomics(algorithm, grid, block):
    """Requests of atomics that do nothing but find that no row is left."""
    return grid * (block // 32 + 1) if algorithm == "light_vector" else 0


def difference(simulated, real):
    if simulated == real:
        return 0.0
    return abs(simulated - real) / real if real else float("inf")


def compare(arguments, kernel, matrix):
    """One kernel on one matrix: every number from both sides."""
    metrics, on_gpu = profile(arguments, kernel, matrix)
    simulated = json_of(run(product(arguments, kernel, matrix, "sim") + ["--report"]))
    ours, theirs = (side["kernel"] for side in (simulated, on_gpu))
    if (ours["config"], ours["compiled"]["arch"]) != (theirs["config"], theirs["compiled"]["arch"]):
        raise Missing(f"the simulator ran {ours['config']} for {ours['compiled']['arch']}, the GPU "
                      f"{theirs['config']} for {theirs['compiled']['arch']}: not one compile")
    if not (simulated["verification"]["passed"] and on_gpu["verification"]["passed"]):
        raise Missing(f"{kernel} on {matrix}: the product was wrong")
    report, block = simulated["report"], int(metrics[BLOCK])
    pair = {"kernel": kernel, "config": ours["config"], "matrix": matrix.name, "nnz": simulated["matrix"]["nnz"],
            "blocks": {"simulator": report["blocks"], "gpu": int(metrics[GRID])}, "compared": {}}
    for name, sources in COMPARED.items():
        real = sum(metrics[source] for source in sources)
        ending = {"simulator": 0, "gpu": 0}
        if name == "global_atomic_requests":
            ending = {side: ending_atomics(ours["algorithm"], grid, block) for side, grid in pair["blocks"].items()}
        entry = {"simulator": report[name] - ending["simulator"], "gpu": real - ending["gpu"]}
        entry["difference"] = difference(entry["simulator"], entry["gpu"])
        pair["compared"][name] = entry
    pair["agrees"] = all(entry["difference"] <= arguments.tolerance for entry in pair["compared"].values())
    pair["warp_execution_efficiency"] = {
        "simulator": report["warp_execution_efficiency"],
        "gpu": metrics[THREADS_AN_INSTRUCTION] / 32,
        "gpu_not_predicated_off": metrics[THREADS_NOT_PREDICATED_OFF] / 32,
    }
    pair["warp_instructions"] = {"simulator": report["warp_instructions"], "gpu": metrics[INSTRUCTIONS]}
    return pair


def show(pair, tolerance):
    print(f"{pair['kernel']}   {pair['matrix']}, {pair['nnz']} nonzeros; blocks: {pair['blocks']['simulator']} in the "
          f"simulator, {pair['blocks']['gpu']} on the GPU")
    for name, entry in pair["compared"].items():
        mark = "" if entry["difference"] <= tolerance else "   DIFFERS"
        print(f"  {name:<28}{entry['simulator']:>14,.0f}{entry['gpu']:>14,.0f}{100 * entry['difference']:>9.2f} %{mark}")
    efficiency, instructions = pair["warp_execution_efficiency"], pair["warp_instructions"]
    print(f"  {'warp execution efficiency':<28}{efficiency['simulator']:>14.3f}{efficiency['gpu']:>14.3f}   "
          f"({efficiency['gpu_not_predicated_off']:.3f} without lanes that are predicated off)")
    print(f"  {'warp instructions':<28}{instructions['simulator']:>14,.0f}{instructions['gpu']:>14,.0f}   (PTX, machine code)")


def machine(arguments):
    """What the numbers depend on."""
    smi = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).splitlines()[0]
    gpu, driver = (part.strip() for part in smi.split(","))
    commit = os.environ.get("SPMV_COMMIT")
    root = Path(__file__).resolve().parents[1]
    if commit is None and shutil.which("git") and (root / ".git").exists():
        commit = run(["git", "-C", str(root), "rev-parse", "HEAD"]).strip()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "gpu": gpu, "driver": driver, "commit": commit,
        "ncu": run([arguments.ncu, "--version"]).strip().splitlines()[-1],
        "spmv": run([arguments.spmv, "--version"]).strip(),
    }


def record(folder, facts, pairs, tolerance):
    name = re.sub(r"[^a-z0-9]+", "-", facts["gpu"].lower()).strip("-")
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**facts, "tolerance": tolerance, "pairs": pairs}, indent=2)
    (folder / "simulator.json").write_text(text + "\n")
    with open(folder / "simulator.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["kernel", "matrix", "nnz", "counter", "simulator", "gpu", "difference"])
        for pair in pairs:
            for name, entry in pair["compared"].items():
                lines.writerow([pair["kernel"], pair["matrix"], pair["nnz"], name,
                                entry["simulator"], entry["gpu"], f"{entry['difference']:.6f}"])
    print(f"recorded in {folder}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrices", nargs="+", type=Path, metavar="A.mtx", help="best of 100,000 nonzeros and more")
    parser.add_argument("--spmv", required=True, help="the program")
    parser.add_argument("--ncu", default="ncu", help="Nsight Compute's command line [default: ncu]")
    parser.add_argument("--kernel", action="append", metavar="'NAME KEY=VALUE ...'", help="instead of the usual ones")
    parser.add_argument("--tolerance", type=float, default=0.02, help="largest relative difference [default: 0.02]")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="write FOLDER/<gpu>/simulator.json and .csv")
    arguments = parser.parse_args()
    kernels = arguments.kernel or KERNELS
    if len(kernels) * len(arguments.matrices) < LEAST_PAIRS:
        parser.error(f"at least {LEAST_PAIRS} pairs of a kernel and a matrix are wanted")
    try:
        facts = machine(arguments)
        pairs = []
        print(f"{facts['gpu']}, driver {facts['driver']}, {facts['ncu']}\n{'':<30}{'simulator':>14}{'GPU':>14}{'difference':>11}")
        for matrix in arguments.matrices:
            for kernel in kernels:
                pairs.append(compare(arguments, kernel, matrix))
                show(pairs[-1], arguments.tolerance)
        if arguments.record:
            record(arguments.record, facts, pairs, arguments.tolerance)
    except Missing as problem:
        print(f"compare_with_ncu: {problem}", file=sys.stderr)
        sys.exit(4)
    agreeing = [f"{pair['kernel']} on {pair['matrix']}" for pair in pairs if pair["agrees"]]
    print(f"{len(agreeing)} of {len(pairs)} pairs agree within {100 * arguments.tolerance:g} %: {', '.join(agreeing)}")
    sys.exit(0 if len(agreeing) >= LEAST_PAIRS else 1)


if __name__ == "__main__":
    main()
