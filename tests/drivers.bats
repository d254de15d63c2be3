#!/usr/bin/env bats
# Stores whose records a driver moves (docs/drivers.md): exec:. The drivers are rlock-store-dir of
# examples/drivers, and rlock-store-liar, which keeps all promises but one.
load helper

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

# unfit: each row LIE|CHECK|WORDS of standard input: the doctor says so of that liar; of all of them
# at the same time, as it looks for a certain time.
unfit() {
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

refuses() { # WORDS OPTION...
    run -64 rlock "${@:2}"
    [[ $output == *"exec: has no $1"* ]]
}

@test "one runs at a time, and those that wait come in order" {
    stay a k
    for name in b c d; do
        queue "$name" k
    done
    held k
    ends_well a
    in_turn 60 b c d
    is_free k
}

@test "a try is refused, with the holder's name; status, history and events show it" {
    stay a k
    run -75 rlock run -n k -- true
    [[ $output == *"held by"* ]]
    run -0 rlock status --json k
    jq -e ".[0].holders[0].pid == ${pid[a]}" <<<"$output"
    run -0 rlock status
    [[ $output == *exclusive* ]]
    bg_says events 'events: listening' rlock events -v --json k
    ends_well a
    run -0 rlock history --json k
    jq -e '.[0].outcome == "exit 9"' <<<"$output"
    run -3 rlock run k -- sh -c 'exit 3'
    poll_until 20 contains "$T/events.out" '"k"'
    run -0 rlock metrics
    [[ $output == *'key="k"'* ]]
}

@test "readers share, slots are counted, priorities and the latest of a group come first" {
    hold r1 k --read
    run -0 rlock run -n --read k -- true
    run -75 rlock run -n k -- true
    terminate r1
    hold s1 s --limit 2
    run -0 rlock run -n --limit 2 s -- sh -c 'echo "$RLOCK_SLOT"'
    [[ $output == 2 ]]
    run -0 rlock limit s 1
    run -75 rlock run -n --limit 2 s -- true
    hold a k
    queue low k
    queue high k --priority 5
    terminate a
    ends_with low 0 30
    ends_with high 0
    [[ $(xargs <"$LOG") == "high low" ]]
    hold a k
    queued k bg old rlock run --latest k -- true
    bg new rlock run --latest --replace --lease 9s k -- true
    ends_with old 75 20
    ends_with new 0 40
    finish a
}

@test "acquire, renew, release, --at-least, --unless-done, pauses of a KEY, latches" {
    run -0 rlock acquire --lease 1m k
    owner=$output
    run -75 rlock run -n k -- true
    run -0 rlock renew --owner "$owner" k
    run -0 rlock release --owner "$owner" k
    run -0 rlock run --at-least 3s l -- true
    timed 1500 20000 rlock run l -- true
    run -0 rlock run --unless-done 1h m -- touch "$T/once"
    run -75 rlock run -n --unless-done 1h m -- false
    run -0 rlock pause -m upgrade k 1h
    run -75 rlock run -n k -- true
    [[ $output == *upgrade* ]]
    run -0 rlock resume k
    run -0 rlock run -n k -- true
    run -0 rlock latch set gate 1
    bg waits rlock latch wait gate
    run -0 rlock latch count-down gate
    ends_with waits 0 20
}

@test "force-release asks the holder, and takes the lock with --now" {
    hold a k --lease 6s
    run -0 rlock force-release --yes k
    ends_with a 79 20
    contains "$T/a.err" 'revoked by'
    hold a k --lease 1m
    run -0 rlock force-release --yes --now k
    run -0 rlock run -n k -- true
}

@test "H92 the lock of a dead holder is free after its lease for who waits" {
    at_work a k 100 --lease 4s
    queued k bg b rlock run k -- "$RLOCK_TEST_TOOLS/worker" "$LOG" b 0.1
    kill_both a
    ends_with b 0 40
    no_overlap
}

@test "many contenders for one lock, at two in three writes in conflict" {
    one_after_the_other 8
}

# host_of_a: prints the process of the host that run "a" has.
host_of_a() {
    pgrep -P "$(agent_of "${pid[a]}")" -x rlock-external
}

# has_host_but HOST: run "a" has another one.
has_host_but() {
    local host
    host=$(host_of_a) && [[ $host != "$1" ]]
}

@test "a driver that dies is a lost connection: the holder keeps its lock by way of the next" {
    stay a k --lease 12s
    host=$(host_of_a)
    kill -KILL "$(pgrep -P "$host")"
    poll_until 20 has_host_but "$host"
    renewed k
    ends_well a
    run -0 rlock run -n k -- true
}

@test "drivers and hosts end with what has used them" {
    run -0 rlock run k -- true
    stay a k
    host=$(host_of_a)
    driver=$(pgrep -P "$host")
    kill_both a
    poll_until 20 gone "$host"
    poll_until 20 gone "$driver"
}

@test "the store's time: who tries once is let in when a dead holder's lease is over by it" {
    export RLOCK_URL=exec:liar/$T/timed/dates
    hold a k --lease 2s
    kill_both a
    run -75 rlock run -n k -- true
    poll_until 30 rlock run -n k -- true
}

@test "what takes several keys in one step is refused" {
    refuses 'locks of several KEYs' run k l -- true
    refuses '--any' run --any k l -- true
    refuses '--mirror' run --mirror string:x k -- true
    refuses 'pause of a GLOB' pause -m why 'k*' 1h
    refuses 'init' init
    refuses '--grace' run --grace k -- true
    refuses '--replicas' run --replicas 1 k -- true
    run -64 rlock run -u "$RLOCK_URL" -u redis://127.0.0.1 k -- true
    refuses 'init --minimum-version' init --minimum-version 1.0.0
    [[ ! -e $T/locks ]]
}

@test "no such driver, or one that cannot serve: 69, and why" {
    run -69 rlock run -u exec:nosuch/x --server-wait 0 k -- true
    [[ $output == *"the program rlock-store-nosuch cannot be started"* ]]
    run -69 rlock run -u "exec:liar/$T/later" --server-wait 0 k -- true
    [[ $output == *"no answer of the protocol: ok 2"* ]]
    run -69 rlock run -u "exec:liar/$T/shy" --server-wait 0 k -- true
    [[ $output == *"it is not in the mood"* ]]
    run -69 rlock run -u "exec:liar/$T/ends" --server-wait 0 k -- true
    [[ $output == *"it has had enough"* ]]
    run -64 rlock run -u exec:../x k -- true
    [[ $output == *"has no name of a program (write exec:NAME/REST)"* ]]
    run -64 rlock run -u exec:x/https://u:secret@h k -- true
    [[ $output == *"has a password"* && $output != *secret* ]]
}

@test "the doctor: drivers that keep their promises" {
    bg dir rlock doctor
    bg honest rlock doctor -u "exec:liar/$T/honest/"
    bg timed rlock doctor -u "exec:liar/$T/timed/dates"
    all_end 0 100 dir honest timed
    fails contains "$T/dir.out" unfit
    contains "$T/timed.out" 'fine     date'
}

@test "the doctor: other bytes than were put; those of what is written in two steps; none" {
    unfit <<'END'
cut|bytes|other bytes
trim|bytes|other bytes
torn|lost|other bytes
lost|bytes|another text
END
}

@test "the doctor: answers that are none; fewer bytes than an answer has said" {
    unfit <<'END'
strange|bytes|no answer of the protocol: well done
versions|bytes|no answer of the protocol: done two words
length|bytes|no answer in time
END
}

@test "the doctor: what is there is made anew; no comparison, or one that another put gets into" {
    unfit <<'END'
create|create|replaces a key
never|create|replaces a key
race|race|does not compare and set
END
}

@test "the doctor: a refused put that is done; the same version twice; an old record" {
    unfit <<'END'
refused|race|was done
hash|versions|comes twice
stale|reads|what was there before
END
}

@test "the doctor: a list lacks keys; a clock that stands still, and one that goes backwards" {
    unfit <<'END'
unlisted|list|lacks a key
clock|date|off within
backwards|date|off within
END
}
