#!/bin/sh
# Runs clang-tidy, one result a file. .clang-tidy lists its checks. The analyzer looks at up to
# RLOCK_ANALYZER_NODES states of each function: 60000 take many times as long, and are for the
# night; its own 225000 take more than an hour.
set -eu
top=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd)
build=${top_builddir:-$top/build}

if ! command -v clang-tidy >/dev/null; then
    echo '1..0 # SKIP no clang-tidy'
    exit
fi
[ -f "$build/build.h" ] || {
    echo "Bail out! no build.h in $build: configure it first"
    exit 1
}

# Where the drivers' libraries have their headers.
libraries="$(pkg-config --cflags libpq 2>/dev/null || :) $(pkg-config --cflags libmariadb \
    2>/dev/null || :) $(pkg-config --cflags lua5.1 2>/dev/null || :)"

# The analyzer does not know marks such as FREED (base/mem.h), and takes what they free for a leak.
# tidy FILE: runs beside others, so it prints its findings in one piece.
nodes=${RLOCK_ANALYZER_NODES:-5000}
export top build libraries nodes
# shellcheck disable=SC2016 # for the inner shell
tidy='
checks=
! grep -qE "FREED|ENDED_BY" "$1" || checks=-clang-analyzer-unix.Malloc
if faults=$(clang-tidy --quiet --checks="$checks" --header-filter="^$top/src/" "$1" -- -std=gnu11 \
    -D_GNU_SOURCE -DPROGRAM_DIRECTORY="\"\"" -include "$build/build.h" -I"$build" \
    -I"$top/src" $libraries -Xclang -analyzer-config -Xclang "max-nodes=$nodes" 2>&1); then
    echo "ok - ${1#"$top/src/"}"
else
    printf "not ok - %s\n%s\n" "${1#"$top/src/"}" "$(printf "%s\n" "$faults" | sed "s/^/# /")"
fi'
# shellcheck disable=SC2046 # a list of words
set -- $(find "$top/src" -name '*.c' | sort)
echo "1..$#"
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 sh -c "$tidy" tidy
