#!/bin/sh
# compat.bats with the first version itself, built from the history of this repository where that is
# here.
set -eu
top=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd)
first=8ebeb5f11e925bc6e96da3a5644d122f94d3e287

git -C "$top" cat-file -e "$first^{commit}" 2>/dev/null || {
    echo '1..0 # SKIP the first version is not in the history here'
    exit
}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
build() {
    git -C "$top" archive "$first" | tar -x -C "$place"
    cd "$place"
    autoreconf -fi
    ./configure
    make -j"$(nproc)" rlock
}
(build) >"$place/log" 2>&1 || {
    sed 's/^/# /' "$place/log"
    echo "Bail out! the first version cannot be built here"
    exit 1
}
RLOCK_EARLIER=$place/rlock bats --tap "$top/tests/compat.bats"
