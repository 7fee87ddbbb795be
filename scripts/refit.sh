#!/usr/bin/env bash
# Fits the planner's prices to the records that they come from, and tells how good the choices are.
#
# usage: refit.sh [OPTIONS OF spmv fit but --output, which is the table that the planner has]
set -euo pipefail
cd "$(dirname "$0")/.."
records=(
  more/2026-11-22T00-06-04-fc5480a-more.csv
  more/2026-11-22T05-05-09-7c0d0f6-more.csv
  more/2026-11-22T09-32-30-a211d54-small.csv
  2026-11-22T14-41-51-fdcb6ea.csv
  more/2026-11-22T15-04-30-fdcb6ea-more.csv
  more/2026-11-22T15-26-18-64f9f1b-standard.csv
  more/2026-11-22T15-27-18-64f9f1b-more.csv
  more/2026-11-22T18-21-53-2657590-drawn.csv
  more/2026-11-22T18-58-04-2657590-drawn.csv
  more/2026-11-22T19-04-01-746106c-special.csv
  more/2026-11-22T19-05-40-746106c-special_drawn.csv
  more/2026-11-22T19-48-24-ad1930b-drawn.csv
  more/2026-11-22T22-10-02-471bd35-drawn.csv
  more/2026-11-22T22-12-41-471bd35-drawn_small.csv
  more/2026-11-22T22-25-52-edd334c-blocks.csv
  more/2026-11-22T22-26-09-471bd35-blocks.csv
  more/2026-11-22T22-34-09-edd334c-fem.csv
  more/2026-11-22T22-34-23-edd334c-blocks_lanes.csv
  more/2026-11-22T23-19-26-edd334c-small.csv
  more/2026-11-22T23-21-26-edd334c-drawn_fem.csv
  more/2026-11-22T23-22-03-edd334c-drawn_medium.csv
  more/2026-11-22T23-23-32-edd334c-drawn_small.csv
  more/2026-11-22T23-42-26-edd334c-drawn_medium.csv
  more/2026-11-22T23-42-59-edd334c-drawn_small.csv
  more/2026-11-22T23-43-24-edd334c-drawn.csv
  more/2026-11-23T02-56-05-57f77fd-two_phase.csv
  more/2026-11-23T02-58-14-57f77fd-dia.csv
  2026-11-23T06-25-00-ba70e02.csv
  more/2026-11-23T06-36-48-ba70e02-drawn.csv
  more/2026-11-23T09-33-28-d11bfa5-half.csv
  more/2026-11-23T09-35-16-d11bfa5-drawn.csv
  more/2026-11-23T13-41-33-22b458e-drawn.csv
  more/2026-11-23T14-56-18-64aa3ce-drawn.csv
  more/2026-11-23T15-05-45-64aa3ce-drawn_giants.csv
  more/2026-11-23T19-56-29-26f7c05-drawn_giants.csv
  more/2026-11-23T22-35-33-f12489a-dia.csv
  more/2026-11-24T11-38-32-219b185-integers_each.csv
  more/2026-11-25T03-09-57-8fd088f-threads_per_block_small.csv
  more/2026-11-25T03-10-42-8fd088f-threads_per_block.csv
  more/2026-11-25T03-41-47-7c7a5d1-threads_per_block_drawn.csv
  more/2026-11-26T10-34-17-a11405b-special.csv
  more/2026-11-26T10-37-44-a11405b-special_drawn.csv
  2026-11-26T11-44-51-0000982.csv
  more/2026-11-26T14-03-14-352e189-half.csv
  more/2026-11-28T14-43-33-2c55059-drawn_blocks.csv
  more/2026-11-28T14-44-59-2c55059-drawn_irregular.csv
  more/2026-11-28T15-08-03-7a6a20f-changed_small.csv
  more/2026-11-28T15-09-54-7a6a20f-changed_giants.csv
  more/2026-11-28T15-11-29-7a6a20f-changed_drawn.csv
  more/2026-11-28T15-14-08-7a6a20f-changed_medium.csv
  more/2026-11-28T17-49-44-79c31ed-more.csv
  more/2026-11-28T21-26-08-f281382-standard.csv
  more/2026-11-28T21-59-10-d29458c-drawn_dense.csv
)
# Kernels that were others before.
since=(
  --since two_phase=2026-11-23T02:56:05Z
  --since bsr=2026-11-25T17:54:10Z
)
cargo run --release --quiet --package spmv-cli -- fit "${records[@]/#/benches/record/nvidia-h200/}" "${since[@]}" \
  --output spmv-runtime/src/planner/sm_90.csv "$@"
