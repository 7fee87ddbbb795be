#!/usr/bin/env bash
# Runs on a GPU machine the examples that fuse what a library does in several passes, on matrices of several kinds: each says how
# many times as fast it is as a plain product and vector operations. Nothing is built.
#
# usage: fused_on_gpu.sh EXAMPLES >benches/record/GPU/fused.log
#   EXAMPLES holds 06_shortest_paths, 07_page_rank and 08_jacobi as `cargo build --release --examples` builds them; run in the
#   project's root. SPMV_COMMIT says which commit they are.
set -uo pipefail
examples=$1 failed=0
on() {
  local name=$1 matrix
  shift
  for matrix; do
    echo "-- $name $matrix"
    "$examples/$name" "$matrix" 2>&1 || failed=1
  done
}
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader)
echo "# ${SPMV_COMMIT:-unknown}, $(date -u +%FT%TZ), $gpu"
on 06_shortest_paths tests/matrices/USAir97.mtx rmat:scale=14,per_row=16 rmat:scale=18,per_row=16 rmat:scale=21,per_row=8 \
  rmat:scale=21,per_row=16 uniform:rows=4e6,cols=4e6,per_row=8
on 07_page_rank tests/matrices/USAir97.mtx rmat:scale=14,per_row=16 rmat:scale=18,per_row=16 rmat:scale=21,per_row=8 \
  rmat:scale=21,per_row=16 power_law:n=2e6 uniform:rows=4e6,cols=4e6,per_row=8 uniform:rows=8e6,cols=8e6,per_row=3 road:n=8e6 \
  gaussian:n=1e6,per_row=22,sigma=1e4
on 08_jacobi tests/matrices/jagmesh7.mtx stencil_5:nx=3000,ny=3000 stencil_9:nx=2000,ny=2000 stencil_7:nx=160,ny=160,nz=160 \
  stencil_27:nx=130,ny=130,nz=130 road:n=8e6 gaussian:n=1e6,per_row=22,sigma=100 fem:nx=60,ny=60,nz=60,unknowns=3
exit $failed
