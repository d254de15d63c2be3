#!/bin/sh
# 32,000 runs of tests/unit/test_store_quorum by chance, from the seed RLOCK_SEED on (1).
set -eu
build=${top_builddir:-.}

make -s -C "$build" tests/unit/test_store_quorum >&2
RLOCK_RUNS=8000 exec "$build/tests/unit/test_store_quorum" "${RLOCK_SEED:-1}"
