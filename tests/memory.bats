# A store that can do little (memory_store.c): what every command makes of it. It shows that no
# command relies on more than a store promises: leases are as long as the store grants them, a
# session may end without notice, and what the store cannot do is refused in one wording before it
# is asked. server_allows MS: the longest lease that it grants; end_session: of the holder of a KEY;
# end_of_lease: of k, as it stands in the server; is_renewed_since END: it is later by now.

load helper

setup_file() {
    export RLOCK=$RLOCK_TEST_TOOLS/rlock-memory
    [[ -x $RLOCK ]] || { echo "no program $RLOCK: make check builds it" && false; }
    clean_environment
}

setup() {
    start_test
    SERVER=$T/server
    export RLOCK_URL=memory://$SERVER
    server_allows 60000
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || tail -n +1 "$T"/*.err "$SERVER" || true
    end_processes
}

teardown_file() { :; }

# server_allows MS: the longest lease that it grants.
server_allows() {
    echo "allows $1" >"$SERVER"
}

# The session of the holder of a KEY ends.
end_session() {
    flock "$SERVER" sh -c 'left=$(grep -vF " rlock:{$1} " "$2") && echo "$left" >"$2"' \
        - "$1" "$SERVER"
}

# has_entry KEY: the server has an entry for it.
has_entry() {
    grep -qF " rlock:{$1} " "$SERVER"
}

# The end of k's lease, as it stands there while nothing writes.
end_of_lease() {
    flock "$SERVER" sed -n 's/^lock rlock:{k} [^ ]* [^ ]* [^ ]* \([0-9]*\) .*/\1/p' "$SERVER"
}

# is_renewed_since END
is_renewed_since() {
    (($(end_of_lease) > $1))
}

@test "a command runs under a lock that others do not get, and that is free when it has ended" {
    run -0 --separate-stderr rlock run k -- sh -c 'echo "$RLOCK_KEY $RLOCK_FENCE"'
    [[ $output == "k 1" && $stderr == "" ]]
    run ! has_entry k
    stay a k
    says 75 '^rlock: k: not acquired: held by .* \(sh\)' run -n k -- touch "$T/ran"
    run -0 rlock run -n other -- true
    ends_well a
    run -0 rlock run -n k -- true
}

@test "twenty that want the same lock have it one after the other" {
    one_after_the_other 20
}

@test "a waiter has it when it is free, without a queue; -w ends in time" {
    stay a k
    bg_says b '; memory:// has no queue' rlock run k -- sh -c "echo b >'$LOG'"
    refused 75 run -w 3s k -- touch "$T/ran"
    ends_well a
    in_turn 10 b
}

@test "the lease is the one that was granted: in messages, for the command and in status" {
    server_allows 20000
    run -0 --separate-stderr rlock run --lease 60s k -- \
        sh -c "echo \$RLOCK_LEASE_MS; rlock status --json k >'$T/status'"
    [[ $output == 20000 ]]
    stderr_line '^rlock: k: the store grants a lease of 20s, not more$'
    output=$(<"$T/status")
    json '.[0].holders[0].lease_left_ms | . > 0 and . <= 20000'
    refused 0 run --lease 10s k -- sh -c 'echo $RLOCK_LEASE_MS'
    [[ $output == 10000 && $stderr == "" ]]
}

@test "a lock that cannot be renewed: the command is stopped before the granted lease ends" {
    server_allows 9000
    bg_up a rlock run --lease 10m --kill-after 3s k -- \
        sh -c "trap 'cut -d\" \" -f1 /proc/uptime >\"$T/stopped\"; exit 0' TERM; : >'$T/a.up'
        while :; do sleep 0.05; done"
    mv "$SERVER" "$T/away"
    ends_with a 79 10
    # By the clock that the store counts with, in hundredths of a second: of the last renewal, which
    # was written there.
    end=$(sed -n 's/^lock [^ ]* [^ ]* [^ ]* [^ ]* \([0-9]*\)[0-9]\{7\} .*/\1/p' "$T/away")
    (($(tr -d . <"$T/stopped") < end))
    contains "$T/a.err" 'rlock: k: lock lost: not renewed in time: cannot reach memory://'
}

@test "a session that has ended: the command is stopped at once, whatever is left of the lease" {
    hold a k --lease 10m
    has_entry k
    end_session k
    ends_with a 79 10
    contains "$T/a.err" 'lock lost: the store no longer has it'
    run -0 rlock run -n k -- true
}

@test "a session that has ended, with --on-lost continue: the command continues, and ends with 79" {
    stay a k --on-lost continue --lease 10m
    end_session k
    poll_until 10 contains "$T/a.err" 'lock lost: the store no longer has it'
    alive "${pid[a]}"
    : >"$T/a.go"
    ends_with a 79
}

@test "an agent that dies: the next one continues the session, and hears of its end" {
    hold a k --lease 10m
    before=$(end_of_lease)
    kill_agent a
    poll_until 10 is_renewed_since "$before"
    alive "${pid[a]}"
    end_session k
    ends_with a 79 10
    contains "$T/a.err" 'lock lost: the store no longer has it'
}

@test "acquire --keep: renewed by the process that stays, and with renew, until it is released" {
    server_allows 9000
    sleep 1000 &
    pid[keeper]=$!
    run -0 rlock acquire --keep "${pid[keeper]}" k
    owner=${lines[-1]}
    poll_until 10 is_renewed_since "$(end_of_lease)"
    refused 75 acquire -n --keep "${pid[keeper]}" k
    run -0 rlock renew --owner "$owner" k
    run -1 rlock renew --owner $NO_OWNER k
    run -0 rlock release --owner "$owner" k
    run ! has_entry k
    run -1 rlock release --owner "$owner" k
}

@test "status shows holders, and free locks that are asked for; force-release ends a session" {
    run -0 rlock status
    [[ $output == "" || $output == *"no locks"* ]]
    hold a one
    run -0 rlock status --json
    json 'length == 1 and .[0].key == "one" and .[0].mode == "exclusive" and .[0].waiters == []'
    status_json 'o*' free 'map(.key) == ["free", "one"] and .[0].holders == []'
    run -75 rlock status -q one
    run -0 rlock status -q free
    run -0 rlock force-release --now --yes one
    ends_with a 79
    run -1 rlock force-release --now --yes one
}

@test "what it cannot do is refused unasked: exit 64 from the command line, 78 from a file" {
    mv "$SERVER" "$T/away" # a question to it ends with 69
    refusals 'memory:// has no ' '$' <<'END'
run --read k -- true|--read
read k -- true|--read
run --limit 2 k -- true|--limit
acquire --limit 2 k|--limit
acquire k|lock that outlives its client \(acquire needs --keep\)
reserve k 1h -m x|lock that outlives its client \(acquire needs --keep\)
run a b -- true|locks of several KEYs
run --at-least 5s k -- true|--at-least
run --replicas 1 k -- true|--replicas
run --grace k -- true|--grace
doctor --grace|--grace
init|init
latch set k 1|latches
latch list|latches
history|memory of former runs
status --all|memory of former runs
run --unless-done 1h k -- true|memory of former runs
END
    echo 'at-least = 5s' >"$T/config"
    refused 78 run --config "$T/config" k -- true
    stderr_line "^rlock: run: $T/config:1: memory:// has no --at-least\$"
    refused 64 run -u memory:///a -u memory:///b k -- true
    stderr_line 'has memory:///a beside another store, but a quorum is made of single servers'
}

@test "a store that is away: exit 69 when it stays away, and waited for when it comes" {
    mv "$SERVER" "$T/away"
    says 69 "^rlock: k: .*cannot reach memory://$SERVER" run --server-wait 0 k -- touch "$T/ran"
    bg_says a 'cannot reach memory://' rlock run --server-wait 1m k -- touch "$T/ran"
    [[ ! -e $T/ran ]]
    mv "$T/away" "$SERVER"
    finish a 20
    [[ $status == 0 && -e $T/ran ]]
}

@test "doctor: what the store itself has to say, and a lock for trial" {
    prints 0 "*memory://$SERVER*fine     lease *fine     lock *" doctor
    server_allows 5000
    run -0 rlock doctor --json
    json '.verdict == "fit" and .servers[0].software == "memory" and .servers[0].uptime_s == null'
    json '.servers[0].findings[0] | .check == "lease" and .level == "note"'
    rm "$SERVER"
    prints 69 '*unfit    reach*' doctor
}
