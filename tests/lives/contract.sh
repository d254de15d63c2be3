#!/bin/sh
# The cases of the contract (contract.c) find the same on Linux and on the simulated kernel.
set -eu
build=${top_builddir:-.}

if [ "$(uname -m)" != x86_64 ]; then
    echo '1..0 # SKIP its coroutines are for amd64'
    exit
fi
if ! pkg-config --exists lua-5.1 lua5.1 2>/dev/null && ! pkg-config --exists lua5.1; then
    echo '1..0 # SKIP no Lua 5.1: the server is a host'
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s -C "$build" lives-build >"$work/made" 2>&1 || { cat "$work/made"; exit 1; }
"$build/lives/tests/lives/contract_linux" >"$work/linux"
"$build/lives/tests/lives/contract_lives" >"$work/lives"
number=0
while read -r name; do
    number=$((number + 1))
    grep "^$name" "$work/linux" >"$work/expected"
    grep "^$name" "$work/lives" >"$work/got"
    if cmp -s "$work/expected" "$work/got"; then
        echo "ok $number - ${name%:}"
    else
        echo "not ok $number - ${name%:}"
        diff "$work/expected" "$work/got" | sed 's/^/# /'
    fi
done <<NAMES
$(cut -d' ' -f1 "$work/linux")
NAMES
echo "1..$number"
