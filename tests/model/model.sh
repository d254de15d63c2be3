#!/bin/sh
# Has spin check tests/model/handover.pml: the design in every state that up to two faults lead to,
# and seeded mistakes, each of which must be found. README.md beside it says what that proves.
#
# "model.sh FAULTS" is a larger search instead, for as long as it takes: with so many faults (at
# most 3), only of an exclusive lock, and with hashes in place of states, so that it may miss some.
set -eu
model=$(cd "${top_srcdir:-$(dirname "$0")/../..}" && pwd)/tests/model/handover.pml

if ! command -v spin >/dev/null; then
    echo '1..0 # SKIP no spin'
    exit
fi
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT TERM HUP
cd "$place"

# build "DEFINITION..." FLAG...: ./pan is the search of the model with these definitions.
build() {
    definitions=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    spin -a $definitions "$model" &&
        gcc -DSAFETY -DNOREDUCE -DNOFAIR -DNOBOUNDCHECK "$@" -o pan pan.c
}

# search: bounded in depth and memory, far above what is needed; a run that meets one proves
# nothing.
search() {
    nice ./pan -m200000 -w"$hash_bits"
}

number=0 failed=0
# result WHAT COMMAND...: one line of TAP, and if COMMAND fails, what was seen.
result() {
    what=$1
    shift
    number=$((number + 1))
    if "$@" >seen 2>&1; then
        echo "ok $number - $what"
    else
        failed=1
        echo "not ok $number - $what"
        sed 's/^/# /' seen
        # How it comes about.
        [ ! -e handover.pml.trail ] ||
            ./pan -r handover.pml.trail 2>&1 | tail -n 200 | sed 's/^/# /'
    fi
}

# Every state was visited, and none is bad.
holds() {
    rm -f ./*.trail
    hash_bits=$2
    build "$1" -O2 -DMEMLIM=4000 || return
    search || return
    ! grep -qE 'Search not completed|max search depth|out of memory|resource' seen &&
        grep -q 'errors: 0$' seen && grep -q 'states, stored' seen
}

# An assertion of the model fails: that is the mistake, and no trouble with the search itself.
is_found() {
    rm -f ./*.trail
    hash_bits=20
    build "$1" -O0 -DMEMLIM=4000 || return
    search
    grep -q '^pan:1: assertion violated' seen
}

if [ $# -gt 0 ]; then
    build "-DFAULTS=$1 -DIDLE_MOST=15" -O2 -DBITSTATE
    nice ./pan -m1000000 -w33 -k3
    exit
fi

echo 1..23
slow_stop='-DLEASE=5 -DPLACE=4 -DSTOP=2'
result 'exclusive, two faults' holds '-DFAULTS=2' 24
result 'exclusive, exact and slow clocks, a longer stop, one fault' \
    holds "-DFAULTS=1 -DCLOCKS $slow_stop" 22
result 'exclusive, a waiter that does not offer, one fault' holds '-DFAULTS=1 -DMIXED' 22
result 'a semaphore of two slots, one fault' holds '-DFAULTS=1 -DMODE_L' 20
result 'a writer and two readers, one fault' holds '-DFAULTS=1 -DMODE_S' 22
result 'exclusive, an agent is replaced, one fault' holds '-DFAULTS=1 -DAGENTS' 22
result 'exclusive, a server takes over that knows an older token, one fault' \
    holds '-DFAULTS=1 -DFAILOVER' 22
result 'exclusive, paused and resumed, one fault' holds '-DFAULTS=1 -DPAUSE' 22
result 'a semaphore whose limit changes, one fault' holds '-DFAULTS=1 -DMODE_L -DLIMITS' 22

# finds WHAT "DEFINITION..."
finds() {
    result "found: $1" is_found "$2"
}
finds 'the lease is counted from the receipt of the message' '-DFAULTS=1 -DBUG=BUG_RECEIPT'
finds 'a message with any token starts a command' '-DFAULTS=1 -DBUG=BUG_TOKEN'
finds 'a token serves for more than one heartbeat' '-DFAULTS=2 -DBUG=BUG_ONE_TOKEN'
finds 'the lock is handed to a place that has run out' '-DFAULTS=1 -DBUG=BUG_DEAD_PLACE'
finds 'who cancels leaves behind what was handed over' '-DFAULTS=1 -DBUG=BUG_CANCEL'
finds 'less is left of the place than a stop takes' \
    "-DFAULTS=2 -DBUG=BUG_STOP -DIDLE_MOST=15 $slow_stop"
finds 'a waiter is handed more than is left of its place' '-DFAULTS=1 -DBUG=BUG_LEASE'
finds 'a heartbeat does not find what a lost message has told' '-DFAULTS=1 -DBUG=BUG_NO_EXTEND'
finds 'the renewal of a reader that was handed the lock wakes no waiter' \
    '-DFAULTS=0 -DMODE_S -DBUG=BUG_CASCADE'
finds 'the next agent trusts a whole lease' '-DFAULTS=2 -DAGENTS -DBUG=BUG_AGENT -DIDLE_MOST=15'
finds 'an older token of a server that takes over starts a command' \
    '-DFAULTS=2 -DFAILOVER -DBUG=BUG_OLD_TOKEN -DIDLE_MOST=15'
finds 'the end of a pause wakes no waiter' '-DFAULTS=0 -DPAUSE -DBUG=BUG_RESUME'
finds 'a pause lets a waiter in' '-DFAULTS=0 -DPAUSE -DBUG=BUG_PAUSE'
finds 'a higher limit wakes no waiter' '-DFAULTS=1 -DMODE_L -DLIMITS -DBUG=BUG_LIMIT'
[ $failed = 0 ]
