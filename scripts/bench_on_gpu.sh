#!/usr/bin/env bash
# Measures the standard suite on a GPU machine, and holds the times of four kernels against those of ncu where it is
# there. Nothing is built. Exits with 1 if a result of ours was wrong or a step failed.
#
# usage: bench_on_gpu.sh SPMV OUT [FOLDER OF A NEWER CUSPARSE] [OPTIONS OF spmv bench]
#   SPMV is the release command; OUT/record and OUT/*.log are written. SPMV_COMMIT says which commit it is.
#   With a newer cuSPARSE, with its libnvJitLink beside it, the one that the loader finds takes part too.
set -uo pipefail
spmv=$1 out=$2 newer=${3:-}
shift $(($# < 3 ? $# : 3))
mkdir -p "$out"
export SPMV_CACHE_DIR=${SPMV_CACHE_DIR:-off}
libraries=()
if [ -n "$newer" ]; then libraries=(--cusparse "$newer" --cusparse libcusparse.so.12); fi
failed=0
"$spmv" doctor >"$out/doctor.log" 2>&1
"$spmv" bench --suite standard "${libraries[@]}" --record "$out/record" -v "$@" 2>"$out/bench.errors.log" | tee "$out/bench.log"
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
cat "$out/bench.errors.log" >&2

# A kernel alone under ncu beside the cold time of the same kernel: ncu flushes the caches before each kernel too.
if command -v ncu >/dev/null; then
  matrix=stencil_27:nx=128,ny=128,nz=128
  for algorithm in csr_scalar csr_vector hola merge_path; do
    one=(bench --class "$matrix" --value f32 --contenders "ours:$algorithm")
    echo "== $algorithm" >>"$out/ncu.log"
    "$spmv" "${one[@]}" -v >>"$out/ncu.log" 2>&1 || failed=1
    ncu --clock-control none --kernel-name "regex:^spmv_$algorithm$" --metrics gpu__time_duration.sum \
      "$spmv" "${one[@]}" --once >>"$out/ncu.log" 2>&1 || failed=1
  done
  grep -E '^==|cold|gpu__time_duration' "$out/ncu.log"
fi
exit $failed
