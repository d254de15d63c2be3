#!/bin/sh
# A million calls of tests/unit/test_clockless_model, from the seed RLOCK_SEED on (1).
set -eu
build=${top_builddir:-.}

if ! pkg-config --exists lua-5.1 2>/dev/null && ! pkg-config --exists lua5.1; then
    echo '1..0 # SKIP no Lua 5.1: scripts run in a host'
    exit
fi
make -s -C "$build" tests/unit/test_clockless_model >&2
exec "$build/tests/unit/test_clockless_model" "${RLOCK_SEED:-1}" 1000000
