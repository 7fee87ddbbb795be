# Two commands matter: `make demo` shows it work, `make test` runs every test.

CARGO ?= cargo
PYTHON ?= python3

.PHONY: demo test examples oldest check fmt lint docs package nvrtc record clean

## Reads a real matrix, generates, compiles and runs a kernel for it, verifies and times it.
demo: nvrtc
	$(CARGO) run --release --package spmv-cli -- demo

## Every test. A missing NVRTC is a failure; a missing GPU is not, unless SPMV_REQUIRE_GPU=1.
test: nvrtc
	CARGO=$(CARGO) $(PYTHON) scripts/test.py

## Every example, as the tests built it.
examples: nvrtc
	$(CARGO) test --workspace --all-features --no-run --quiet
	@for source in spmv-runtime/examples/*.rs ptx-sim/examples/find_a_race.rs; do \
		example=$${CARGO_TARGET_DIR:-target}/debug/examples/$$(basename $$source .rs); \
		echo "== $$example"; $$example || exit 1; \
	done

## The default of every algorithm, compiled by the oldest NVRTC that is supported.
oldest:
	$(PYTHON) scripts/get_nvrtc.py --oldest
	$(CARGO) test --workspace --all-features --no-run --quiet
	@spmv=$${CARGO_TARGET_DIR:-target}/debug/spmv; \
	export SPMV_NVRTC=$$($(PYTHON) scripts/get_nvrtc.py --oldest --print-folder) SPMV_CACHE_DIR=off; \
	names=$$($$spmv algorithms --json | $(PYTHON) -c 'import json, sys; print(*(one["name"] for one in json.load(sys.stdin)["algorithms"]))') || exit 1; \
	for name in $$names; do for value in f32 f64; do \
		$$spmv compile --algorithm $$name --value $$value --arch sm_90 >/dev/null || exit 1; \
	done; done; echo "$$names: compiled by NVRTC of $$SPMV_NVRTC"

## What the continuous integration runs beside the tests.
check: fmt lint docs package

# Modules that a macro declares are not seen by `cargo fmt`.
fmt:
	$(CARGO) fmt --all --check
	rustfmt --check --edition 2024 src/algorithm/*.rs

lint:
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --all-features

# Cargo verifies packages against what it unpacked and built of their dependencies, also where that is from an earlier
# day and the version is still the same.
package:
	rm -rf $${CARGO_TARGET_DIR:-target}/package $${CARGO_TARGET_DIR:-target}/debug/.fingerprint/ptx-sim-* $${CARGO_TARGET_DIR:-target}/debug/.fingerprint/spmv-*
	rm -rf $${CARGO_HOME:-$$HOME/.cargo}/registry/src/-*/ptx-sim-* $${CARGO_HOME:-$$HOME/.cargo}/registry/src/-*/spmv-*
	rm -rf $${CARGO_HOME:-$$HOME/.cargo}/registry/cache/-*/ptx-sim-* $${CARGO_HOME:-$$HOME/.cargo}/registry/cache/-*/spmv-*
	$(CARGO) package --workspace --allow-dirty

## NVRTC from its wheel, where the machine has none in the user's data folder.
nvrtc:
	$(PYTHON) scripts/get_nvrtc.py

clean:
	$(CARGO) clean
