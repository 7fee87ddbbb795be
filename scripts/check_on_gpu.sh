#!/usr/bin/env bash
# Runs on a GPU machine what needs one: conformance, simulator against GPU, sanitizers, latency. Programs and logs
# are in the folders named; nothing is built. Exits with 1 if anything failed.
#
# usage: check_on_gpu.sh PROGRAMS LOGS [SECONDS FOR THE SANITIZERS]
#   PROGRAMS holds conformance, simulator_gpu, scale, sanitizer_control and latency as `cargo test --release --no-run` builds
#   them.
set -uo pipefail
programs=$1 logs=$2 seconds=${3:-1800}
mkdir -p "$logs"
export SPMV_REQUIRE_GPU=1
failed=0
step() {
  local name=$1; shift
  local started=$SECONDS
  if "$@" >"$logs/$name.log" 2>&1; then verdict=ok; else verdict="FAILED ($?)"; failed=1; fi
  printf '%-24s %-12s %4ss  %s\n' "$name" "$verdict" "$((SECONDS - started))" "$(grep -E '^test result|SUMMARY' "$logs/$name.log" | tail -n 1)"
}
complains() {
  "$@"
  [ $? -eq 9 ]
}
step conformance "$programs/conformance" cuda/
step simulator_gpu "$programs/simulator_gpu"
step scale "$programs/scale" cuda/
step latency "$programs/latency" --record "$logs/record"
# The sanitizers: first a kernel that each must complain of, then a cover of the configurations and structures, a process for
# each tool and algorithm. Each has one thread: launches of several are more than the tools keep track of.
if command -v compute-sanitizer >/dev/null; then
  tools="memcheck racecheck initcheck synccheck"
  for tool in $tools; do
    step "$tool control" complains compute-sanitizer --tool "$tool" --error-exitcode 9 "$programs/sanitizer_control" "$tool"
  done
  algorithms=$("$programs/conformance" --list 2>/dev/null | sed -n 's|^sanitizer/\([^ ]*\) .*|\1|p' | sort -u)
  export programs logs
  step sanitizers timeout "$seconds" xargs -P "$(nproc)" -n 2 bash -c 'compute-sanitizer --tool "$0" --error-exitcode 9 \
    "$programs/conformance" --test-threads=1 "sanitizer/$1 " >"$logs/$0.$1.log" 2>&1' \
    < <(for tool in $tools; do for algorithm in $algorithms; do echo "$tool $algorithm"; done; done)
fi
exit $failed
