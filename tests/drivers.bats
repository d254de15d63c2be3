#!/usr/bin/env bats
# Stores whose records a driver moves (docs/drivers.md): exec:. The drivers are rlock-store-dir of
# examples/drivers, and rlock-store-liar, which keeps all promises but one. liars_are_unfit reads
# rows LIE|CHECK|WORDS: the doctor finds a driver with that LIE unfit by that CHECK, in these WORDS.
# host_of_a: the process of the host that run "a" has.
load helper
load clockless

setup_file() {
    [[ -x ${RLOCK%/*}/rlock-external ]] || skip "rlock-external was not built: it takes Lua 5.1"
    clean_environment
    export PATH=$TESTS:$TESTS/../examples/drivers:$PATH
}

teardown_file() { :; }

setup() {
    start_test
    export RLOCK_URL=exec:dir/$T/locks
    # Many that come at once are in each other's way, and a driver starts processes for each
    # request.
    export RLOCK_SERVER_WAIT=2m
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || tail -n 20 "$T"/*.err "$T"/*.out 2>/dev/null || true
    end_processes
}

# liars_are_unfit: standard input has a row LIE|CHECK|WORDS for each liar. The doctor finds it unfit
# by that CHECK, with these WORDS. All are examined at the same time: each takes half a minute.
liars_are_unfit() {
    local lie check words row rows
    mapfile -t rows
    for row in "${rows[@]}"; do
        lie=${row%%|*}
        bg "$lie" rlock doctor --server-wait 0 -u "exec:liar/$T/$lie/$lie"
    done
    for row in "${rows[@]}"; do
        IFS='|' read -r lie check words <<<"$row"
        ends_with "$lie" 69 100
        output=$(<"$T/$lie.out")
        [[ $output == *"  unfit    $check "*"$words"* ]]
    done
}

# store_has_no WORDS OPTION...: rlock with these options ends with 64 and says so.
store_has_no() { # WORDS OPTION...
    run -64 rlock "${@:2}"
    [[ $output == *"exec: has no $1"* ]]
}

@test "one runs at a time, and those that wait come in order" {
    one_runs_and_waiters_come_in_order 60 # s: a driver starts processes
}

@test "a try is refused, with the holder's name; status, history and events show it" {
    holder_is_named
}

@test "readers share, slots are counted, priorities and the latest of a group come first" {
    modes_slots_and_priorities
}

@test "acquire, renew and release, --at-least, --unless-done, pauses of a KEY, and latches work" {
    locks_of_scripts_and_latches
}

@test "force-release asks the holder, and takes the lock with --now" {
    force_release_ends_holder 6s
}

@test "H92 a waiter has the lock of a dead holder after its lease, and not beside its command" {
    waiter_follows_dead_holder
}

@test "eight contenders, two thirds of whose writes conflict, have the lock one after the other" {
    one_after_the_other 8
}

# host_of_a: prints the process of the host that run "a" has.
host_of_a() {
    children_of "$(agent_of "${pid[a]}")" rlock-external
}

# has_host_but HOST: run "a" has another one.
has_host_but() {
    local host
    host=$(host_of_a) && [[ $host != "$1" ]]
}

@test "a driver that dies is a lost connection: the holder keeps its lock by way of the next" {
    stay a k -v --lease 12s
    host=$(host_of_a)
    kill -KILL "$(children_of "$host")"
    poll_until 20 has_host_but "$host"
    renews a
    ends_well a
    run -0 rlock run -n k -- true
}

# A driver that waits before it reads a record, and notes how many bytes of it have come.
waiting_driver() {
    mkdir -p "$T/bin"
    cat >"$T/bin/rlock-store-waits" <<'END'
#!/bin/sh
while read -r verb key version length; do
    case $verb in
    hello) echo 'ok 1' ;;
    get)
        zs=$(head -c 200000 /dev/zero | tr '\0' z)
        printf 'rlock/1 hash 0\nk lock/1\nz %s\n' "$zs" >"$1/got"
        echo "value 1 $(wc -c <"$1/got")" && cat "$1/got" ;;
    put)
        [ -e "$1/host" ] || echo "$PPID" >"$1/host"
        while [ ! -e "$1/go" ]; do sleep 0.1; done
        echo "$length $(head -c "$length" | wc -c)" >"$1/came$PPID" ;;
    esac
done
END
    chmod +x "$T/bin/rlock-store-waits"
    PATH=$T/bin:$PATH
}

@test "a put comes whole or not at all, also of a host that is killed while it asks" {
    waiting_driver
    bg a rlock run -u "exec:waits/$T" --server-wait 0 k -- true
    poll_until 60 test -s "$T/host"
    host=$(<"$T/host")
    kill -KILL "$host"
    touch "$T/go"
    poll_until 60 test -s "$T/came$host"
    read -r length came <"$T/came$host"
    ((length > 200000 && came == length))
    ends_with a 69 60
}

# To the disk, by way of a "sync" that notes what is done.
@test "rlock-store-dir says that a put is done when its name is on the disk, too" {
    mkdir "$T/bin"
    printf '#!/bin/sh\necho "$* $(ls k 2>/dev/null)" >>"%s"\n' "$T/synced" >"$T/bin/sync"
    chmod +x "$T/bin/sync"
    run -0 env PATH="$T/bin:$PATH" rlock-store-dir "$T/dir" < <(printf 'hello 1 x\nput k - 2\nab')
    [[ $output == *done* ]]
    [[ $(tail -n 1 "$T/synced") == '. k' ]]
}

@test "a file that cannot be looked up is not taken for a lock that is not there" {
    key=$(printf 'k%.0s' {1..300})
    run -69 rlock run --server-wait 0 "$key" -- true
    [[ $output == *'File name too long'* ]]
    run rlock-store-dir "$T/locks" <<<"put $key - 0"
    [[ $output == failed*'File name too long' ]]
}

@test "drivers and hosts end with what has used them" {
    run -0 rlock run k -- true
    stay a k
    host=$(host_of_a)
    driver=$(children_of "$host")
    kill_both a
    poll_until 20 gone "$host"
    poll_until 20 gone "$driver"
}

@test "a try has a dead holder's lock when the lease is over by the store's own time" {
    export RLOCK_URL=exec:liar/$T/timed/dates
    try_follows_dead_holder 30
}

@test "history has the runs of a KEY in their order, whatever the clocks of their hosts say" {
    printf '3600000%32s' '' >"$T/ahead"
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so SHIM_CLOCK_FILE=$T/ahead run -3 rlock run k -- \
        sh -c 'exit 3'
    run -0 rlock run k -- true
    run -0 rlock history --json k
    json 'map(.exit_status) == [3, 0] and .[0].since > .[1].since and .[0].fence < .[1].fence'
}

# A store that a driver reaches has no transactions. An option that needs one is refused, and the
# store is not written.
@test "what takes several keys in one step is refused" {
    store_has_no 'locks of several KEYs' run k l -- true
    store_has_no '--any' run --any k l -- true
    store_has_no '--mirror' run --mirror string:x k -- true
    store_has_no 'pause of a GLOB' pause -m why 'k*' 1h
    store_has_no 'init' init
    store_has_no '--grace' run --grace k -- true
    store_has_no '--replicas' run --replicas 1 k -- true
    run -64 rlock run -u "$RLOCK_URL" -u redis://127.0.0.1 k -- true
    store_has_no 'init --minimum-version' init --minimum-version 1.0.0
    [[ ! -e $T/locks ]]
}

@test "a driver that does not exist, or cannot serve: exit 69, and rlock says why" {
    run -69 rlock run -u exec:nosuch/x --server-wait 0 k -- true
    [[ $output == *"the program rlock-store-nosuch cannot be started"* ]]
    run -69 rlock run -u "exec:liar/$T/later" --server-wait 0 k -- true
    [[ $output == *"no answer of the protocol: ok 2"* ]]
    run -69 rlock run -u "exec:liar/$T/shy" --server-wait 0 k -- true
    [[ $output == *"it is not in the mood"* ]]
    run -69 rlock run -u "exec:liar/$T/ends" --server-wait 0 k -- true
    [[ $output == *"it has had enough"* ]]
    # A sentence of the driver is a part of a message.
    printf '#!/bin/sh\necho "failed it is closed today."\n' >"$T/rlock-store-closed"
    chmod +x "$T/rlock-store-closed"
    PATH=$T:$PATH run -69 rlock run -u exec:closed/x --server-wait 0 k -- true
    [[ ${lines[0]} == *' exec:closed/x: it is closed today' ]]
    run -64 rlock run -u exec:../x k -- true
    [[ $output == *"has no name of a program (write exec:NAME/REST)"* ]]
    run -64 rlock run -u exec:x/https://u:secret@h k -- true
    [[ $output == *"has a password"* && $output != *secret* ]]
}

@test "the doctor: drivers that keep their promises are fit" {
    bg dir rlock doctor
    bg honest rlock doctor -u "exec:liar/$T/honest/"
    bg timed rlock doctor -u "exec:liar/$T/timed/dates"
    all_end 0 100 dir honest timed
    fails contains "$T/dir.out" unfit
    contains "$T/timed.out" 'fine     date'
}

@test "docs/drivers.md: the longest KEY that a driver is asked for, and what becomes of it" {
    local said long
    said=$(grep -o 'up to [0-9,]* bytes with the prefix `rlock`' "$TESTS/../docs/drivers.md")
    said=${said//[!0-9]/}
    printf -v long 'ä%.0s' {1..256}
    printf '#!/bin/sh\ntee -a "%s" | rlock-store-dir "$1"\n' "$T/asked" >"$T/rlock-store-heard"
    chmod +x "$T/rlock-store-heard"
    PATH=$T:$PATH run -69 rlock run -u "exec:heard/$T/locks" --server-wait 0 "$long" -- true
    [[ $output == *'File name too long'* ]]
    read -r _ long <<<"$(grep -m 1 '^get ' "$T/asked")"
    [[ ${#long} == "$said" ]]
}

@test "docs/drivers.md: locks in a directory, with the driver that the page has copied" {
    mkdir "$T/bin"
    ln -s "$RLOCK" "$T/bin/rlock"
    "$TESTS/page_blocks" drivers.md 'Locks in any store, by a driver' 1 |
        sed "s|/usr/local/bin|$T/bin|; s|/mnt/locks|$T/locks|; s|\./nightly|echo done|" >"$T/steps"
    # The driver is as "make install" leaves it among the documentation.
    install -D -m 644 "$TESTS/../examples/drivers/rlock-store-dir" -t "$T/examples/drivers"
    cd "$T"
    run -0 env -u RLOCK_URL PATH="$T/bin:/usr/bin:/bin" sh -e "$T/steps"
    [[ $output == *'fine     count'* && ${lines[-1]} == 'done' ]]
}

@test "the doctor: a driver is unfit if a get returns other bytes than were put, or not all" {
    liars_are_unfit <<'LIE|CHECK|WORDS'
cut|bytes|other bytes
trim|bytes|other bytes
torn|lost|other bytes
half|lost|fewer bytes than its LENGTH
lost|bytes|another text
case|bytes|a get of RLOCK-DOCTOR, which is not there, returns a value
LIE|CHECK|WORDS
}

@test "the doctor: a driver is unfit if its answers are not those of the protocol" {
    liars_are_unfit <<'LIE|CHECK|WORDS'
strange|bytes|no answer of the protocol: well done
versions|bytes|no answer of the protocol: done two words
length|bytes|no answer in time
LIE|CHECK|WORDS
}

@test "the doctor: a driver is unfit if it replaces a key without comparing the version" {
    liars_are_unfit <<'LIE|CHECK|WORDS'
create|create|replaces a key
never|create|replaces a key
race|race|does not compare and set
LIE|CHECK|WORDS
}

@test "the doctor: a driver is unfit if a refused put is done, or a version or record is old" {
    liars_are_unfit <<'LIE|CHECK|WORDS'
refused|race|was done
hash|versions|comes twice
stale|reads|what was there before
LIE|CHECK|WORDS
}

@test "the doctor: a driver is unfit if its list lacks a key, or its clock stops or runs back" {
    liars_are_unfit <<'LIE|CHECK|WORDS'
unlisted|list|lacks a key
clock|date|off within
backwards|date|off within
LIE|CHECK|WORDS
}
