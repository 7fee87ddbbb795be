#!/usr/bin/env bash
# Runs on a GPU machine what needs one: conformance, simulator against GPU, sanitizers, latency. Programs and logs
# are in the folders named; nothing is built. Exits with 1 if anything failed.
#
# usage: check_on_gpu.sh PROGRAMS LOGS [SECONDS FOR EACH SANITIZER]
#   PROGRAMS holds conformance, simulator_gpu, scale, sanitizer_control and latency as `cargo test --release --no-run` builds
#   them.
set -uo pipefail
programs=$1 logs=$2 seconds=${3:-600}
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
# The sanitizers side by side: first a kernel that each must complain of, then a cover of the configurations of every
# algorithm and of the structures.
sanitize() {
  step "$1 control" complains compute-sanitizer --tool "$1" --error-exitcode 9 "$programs/sanitizer_control" "$1"
  step "$1" timeout "$seconds" compute-sanitizer --tool "$1" --error-exitcode 9 \
    "$programs/conformance" sanitizer/
  return $failed
}
if command -v compute-sanitizer >/dev/null; then
  running=()
  for tool in memcheck racecheck initcheck synccheck; do sanitize "$tool" & running+=($!); done
  for process in "${running[@]}"; do wait "$process" || failed=1; done
fi
exit $failed
