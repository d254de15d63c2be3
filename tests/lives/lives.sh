#!/bin/sh
# Lives of the whole program (README.md beside this), for RLOCK_LIVES_SECONDS (60), from the seed
# RLOCK_SEED on (1); then those that tests/lives/seeds lists, in which something went wrong once.
set -eu
here=$(cd "${top_srcdir:-$(dirname "$0")/../..}" && pwd)
build=${top_builddir:-.}

if [ "$(uname -m)" != x86_64 ]; then
    echo '1..0 # SKIP its coroutines are for amd64'
    exit
fi
if ! pkg-config --exists lua-5.1 lua5.1 2>/dev/null && ! pkg-config --exists lua5.1; then
    echo '1..0 # SKIP no Lua 5.1: the server is a host'
    exit
fi
number=0
# report STATUS NAME: one line of TAP, and what was printed.
report() {
    number=$((number + 1))
    if [ "$1" = 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
    fi
    sed 's/^/# /' "$work/out"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lives=$build/lives/tests/lives/lives

status=0
make -s -C "$build" lives SEED="${RLOCK_SEED:-1}" COUNT=1000000000 \
    SECONDS="${RLOCK_LIVES_SECONDS:-60}" >"$work/out" 2>&1 || status=$?
report $status 'lives go well'

status=0
: >"$work/out"
sed 's/ *#.*//' "$here/tests/lives/seeds" | while read -r seed; do
    [ -z "$seed" ] || "$lives" "$seed" >>"$work/out" || exit 1
done || status=1
report $status 'so do those in which something went wrong once'

status=0
{ "$lives" 1 600; "$lives" 1 300; "$lives" 301 300; } >"$work/out" 2>&1 || status=1
[ "$("$lives" -t 77 | cksum)" = "$("$lives" -t 77 | cksum)" ] || status=1
report $status 'a life follows from its seed alone'

status=0
: >"$work/out"
"$lives" -q | while IFS="$(printf '\t')" read -r page text; do
    mandoc -T utf8 -O width=500 "$here/man/$page" | col -b | tr -s ' \t\n' ' ' |
        grep -qF -- "$text" || { echo "$page does not say: $text"; exit 1; }
done >"$work/out" || status=1
report $status 'its sentences stand in the manual'
echo "1..$number"
