# --any, --take in a Redis Cluster, where the KEYs are at different nodes.

load helper
load cluster

# told: what a command is told of its lock, a line each.
told='echo "KEY=$RLOCK_KEY"; echo "MODE=$RLOCK_MODE"; echo "FENCE=$RLOCK_FENCE"'

setup_file() { cluster_file; }
teardown_file() {
    cluster_stop
    redis_stop
}

# a, b, c: a key at each master.
setup() {
    cluster_setup
    # shellcheck disable=SC2154 # cluster_setup
    a=${at[0]} b=${at[1]} c=${at[2]}
}
teardown() { cluster_teardown; }

@test "--any in a Cluster: the first one that is free, in the order given" {
    run -0 --separate-stderr rlock run --any "$c" "$a" "$b" -- sh -c "$told
        '$RLOCK' status -q '$a' '$b'"
    [[ ${lines[0]} == "KEY=$c" && ${lines[1]} == MODE=exclusive && ! $stderr ]]
    [[ ${lines[2]} =~ ^FENCE=[0-9]+$ ]]
    hold x "$c"
    run -0 rlock run --any "$c" "$a" "$b" -- sh -c "$told"
    [[ ${lines[0]} == "KEY=$a" ]]
    run -0 rlock run --any --take 2 "$c" "$b" "$a" -- sh -c "$told"
    [[ ${lines[0]} == "KEY=$b $a" && ${lines[2]} =~ ^FENCE=[0-9]+\ [0-9]+$ ]]
    hold y "$a"
    run -75 --separate-stderr rlock run -n --any --take 2 "$c" "$a" "$b" -- true
    stderr_line "^rlock: 2 of $c, $a, $b: not acquired: $c: held by "
    run -75 --separate-stderr rlock run -n --any "$c" "$a" -- true
    stderr_line "^rlock: one of $c, $a: not acquired: $c: held by "
    run -0 rlock status -q "$b"
    no_waiters "$a" "$b" "$c"
    run -0 rlock history --json "$b"
    json 'length == 1'
}

@test "--any in a Cluster: all are held: a place in each queue, and the first that is released" {
    hold x "$a"
    hold y "$b"
    hold z "$c"
    bg w rlock run --any "$a" "$b" "$c" -- sh -c "$told; exec sleep 1000"
    for key in "$a" "$b" "$c"; do
        poll_until 10 has_place w "$key" 1
    done
    poll_until 15 contains "$T/w.err" "rlock: waiting for one of $a, $b, $c: $a, held by "
    run -0 rlock status "$b"
    [[ $output == *'exclusive, any 1 of 3'* ]]
    run -0 rlock status --json
    json '[.[].waiters[].any] | unique == [{"take": 1, "of": 3}]'
    json '[.[].waiters[].owner] | length == 3 and (unique | length == 1)'
    kill "${pid[y]}"
    poll_until 10 contains "$T/w.out" FENCE
    contains "$T/w.out" "KEY=$b"
    contains "$T/w.err" "rlock: $b: acquired after "
    no_waiters "$a" "$b" "$c"
    holds w "$b"
    holds x "$a"
    renewed "$b"
    kill "${pid[w]}"
    finish w
    run -0 rlock status -q "$b"
    run -0 rlock history --json
    json "[.[] | select(.key == \"$b\")] | length == 2"
    json "[.[] | select(.key != \"$b\")] | length == 0"
}

@test "--any in a Cluster: KEYs at the same node are listened to at the same time" {
    local -a near
    near=("$a" "$(key_at "$(master_of "$a")" 7)" "$(key_at "$(master_of "$a")" 8)")
    hold x "${near[0]}"
    hold y "${near[1]}"
    hold z "${near[2]}"
    for n in 0 1 2; do
        bg "w$n" rlock run --lease 1h --any "${near[@]}" -- sh -c "$told"
        poll_until 10 has_place "w$n" "${near[2]}" 1
        poll_until 15 contains "$T/w$n.err" 'rlock: waiting for '
        # A waiter that nobody calls asks again within 2.75 s.
        forget_calls
        kill "${pid[$(cut -c $((n + 1)) <<<xyz)]}"
        finish "w$n"
        [[ $status == 0 ]]
        contains "$T/w$n.out" "KEY=${near[n]}"
        (($(cluster_calls evalsha) < 30))
        hold "$(cut -c $((n + 1)) <<<xyz)" "${near[n]}"
    done
}

@test "--any in a Cluster: first come, first served in each queue, over sets that overlap" {
    hold x "$a"
    hold y "$b"
    hold z "$c"
    bg one rlock run --any "$a" "$b" -- sh -c "echo one \$RLOCK_KEY >>'$LOG'; exec sleep 1000"
    poll_until 10 has_place one "$b" 1
    bg two rlock run --any "$b" "$c" -- sh -c "echo two \$RLOCK_KEY >>'$LOG'; exec sleep 1000"
    poll_until 10 has_place two "$c" 1
    bg three rlock run "$c" -- sh -c "echo three \$RLOCK_KEY >>'$LOG'"
    poll_until 10 has_place three "$c" 2
    has_place two "$b" 2
    kill "${pid[y]}"
    poll_until 10 contains "$LOG" "one $b"
    no_waiters "$a"
    poll_until 10 has_place two "$b" 1
    kill "${pid[z]}"
    poll_until 10 contains "$LOG" "two $c"
    no_waiters "$b"
    kill "${pid[two]}"
    finish three
    [[ $(xargs <"$LOG") == "one $b two $c three $c" ]]
}

@test "--take in a Cluster: it holds nothing while it waits, and takes all at once" {
    hold x "$a"
    hold y "$b"
    bg w rlock run --any --take 2 "$a" "$b" "$c" -- sh -c "$told; exec sleep 1000"
    poll_until 10 has_place w "$c" 1
    poll_until 15 contains "$T/w.err" "rlock: waiting for 2 of $a, $b, $c: $a, held by "
    run -0 rlock status -q "$c"
    run -75 rlock run -n "$c" -- true
    kill "${pid[y]}"
    poll_until 10 contains "$T/w.out" "KEY=$b $c"
    contains "$T/w.err" "rlock: $b, $c: acquired after "
    no_waiters "$a" "$b" "$c"
    renewed "$b"
    renewed "$c"
    kill "${pid[w]}"
    finish w
    [[ $status == 143 ]]
    run -0 rlock status -q "$b" "$c"
}

@test "H78 --take in a Cluster: two that come first at a free KEY each do not wait for each other" {
    hold x "$a"
    hold z "$c"
    bg one rlock run --any --take 2 "$a" "$b" "$c" -- sh -c "echo one \$RLOCK_KEY >>'$LOG'"
    poll_until 10 has_place one "$b" 1
    poll_until 10 has_place one "$a" 1
    bg two rlock run --any --take 2 "$a" "$b" "$c" -- sh -c "echo two \$RLOCK_KEY >>'$LOG'"
    poll_until 10 has_place two "$b" 2
    poll_until 10 has_place two "$a" 2
    # The queue of one KEY is lost, and the one that was second queues there first.
    stop_both one
    cli "$(master_of "$b")" del "rlock:{$b}"
    poll_until 10 has_place two "$b" 1
    kill -CONT "${pid[one]}" "$agent"
    poll_until 10 has_place one "$b" 2
    kill "${pid[x]}"
    finish one 30
    [[ $status == 0 ]]
    finish two 30
    [[ $status == 0 ]]
    [[ $(cut -d ' ' -f 2- "$LOG" | sort -u) == "$a $b" ]]
    no_waiters "$a" "$b" "$c"
    run -0 rlock status -q "$a" "$b"
}

@test "H62 --any in a Cluster: a waiter that is killed blocks none of its KEYs" {
    hold x "$a"
    hold y "$b"
    bg w rlock run --any "$a" "$b" -- true
    poll_until 10 has_place w "$a" 1
    poll_until 10 has_place w "$b" 1
    kill_both w
    kill "${pid[x]}" "${pid[y]}"
    finish x
    finish y
    run -0 rlock run -w 25s "$a" "$b" -- true
    no_waiters "$a" "$b"
}

@test "H77 --any in a Cluster: a holder that is killed frees its KEY within a lease" {
    hold x "$a"
    hold h "$b" --any --lease 9s "$a"
    holds h "$b"
    kill_both h
    run -0 --separate-stderr rlock run -w 25s --any "$a" "$b" -- sh -c "$told"
    [[ ${lines[0]} == "KEY=$b" ]]
}

@test "--any in a Cluster: a member that is paused or reserved is passed over" {
    rlock pause "$a" 1h -m 'new disk'
    XDG_STATE_HOME=$T/somebody rlock reserve "$b" 1h -m 'looking into it'
    export XDG_STATE_HOME=$T/state
    run -0 rlock run --any "$a" "$b" "$c" -- sh -c "$told"
    [[ ${lines[0]} == "KEY=$c" ]]
    run -75 --separate-stderr rlock run -n --any "$a" "$b" -- true
    stderr_line "^rlock: one of $a, $b: not acquired: $b: reserved by .*, label looking into it\$"
    hold z "$c"
    bg w rlock run --any "$a" "$c" -- sh -c "$told"
    poll_until 10 has_place w "$a" 1
    rlock resume "$a"
    finish w
    [[ $status == 0 ]]
    contains "$T/w.out" "KEY=$a"
}

@test "--any in a Cluster: -w and -E; another kind of lock: 78; nested" {
    hold x "$a"
    hold y "$b"
    run -75 rlock run -w "$(moment)" --any "$a" "$b" -- true
    run -0 --separate-stderr rlock run -n -E 0 --any "$a" "$b" -- true
    [[ ! $stderr ]]
    no_waiters "$a" "$b"
    run -78 rlock run -n --any --limit 2 "$c" "$a" -- "$RLOCK" run --any "$c" "$b" -- true
    run -0 rlock run --any "$a" "$c" -- sh -c \
        "'$RLOCK' run -n --any '$a' '$c' -- sh -c 'echo \$RLOCK_KEY \$RLOCK_FENCE'
        echo \$RLOCK_KEY \$RLOCK_FENCE"
    [[ ${lines[0]} == "${lines[1]}" && ${lines[0]} == "$c "* ]]
}

@test "--any in a Cluster: signals end the wait, and leave no place" {
    hold x "$a"
    hold y "$b"
    bg w rlock run --any "$a" "$b" -- true
    poll_until 10 has_place w "$a" 1
    poll_until 10 has_place w "$b" 1
    kill -TERM "${pid[w]}"
    finish w
    [[ $status == 143 ]]
    no_waiters "$a" "$b"
}

@test "H135 --any in a Cluster: another agent goes on with the same KEY, and with the wait" {
    hold x "$a"
    stay w "$c" --any --lease 15s "$a" "$b"
    kill_agent w
    renewed "$b"
    holds w "$b"
    is_free "$c"
    hold z "$c"
    bg v rlock run --any --lease 15s "$a" "$b" "$c" -- sh -c "$told"
    poll_until 10 has_place v "$b" 1
    kill_agent v
    poll_until 10 has_place v "$b" 1
    ends_well w
    finish v
    [[ $status == 0 ]]
    contains "$T/v.out" "KEY=$b"
    no_waiters "$a" "$b" "$c"
}

@test "H55 --any in a Cluster: a node that hangs keeps nobody from the KEYs of the others" {
    local old
    old=$(master_of "$a")
    hold y "$b"
    hold z "$c"
    bg w rlock run --any "$a" "$b" "$c" -- sh -c "$told"
    finish w
    contains "$T/w.out" "KEY=$a"
    hold x "$a"
    bg w rlock run --lease 1m --any "$a" "$b" "$c" -- sh -c "$told"
    poll_until 10 has_place w "$b" 1
    kill -STOP "$(node_pid "$old")"
    kill "${pid[y]}"
    finish w 30
    [[ $status == 0 ]]
    contains "$T/w.out" "KEY=$b"
    run -0 --separate-stderr rlock run --any "$a" "$b" -- sh -c "$told"
    [[ ${lines[0]} == "KEY=$b" || ${lines[0]} == "KEY=$a" ]]
    kill -CONT "$(node_pid "$old")"
}

@test "H78 --any in a Cluster: contenders for random sets: nobody beside another one at any KEY" {
    any_contenders 10 100 "$a" "$b" "$c" "$(key_at "$(master_of "$a")" 9)"
}

@test "H78 --take 2 of 3 in a Cluster: two contenders, again and again" {
    loop() {
        local n
        for ((n = 0; n < 15; n++)); do
            "$RLOCK" run -q -w 60s --any --take 2 "${@:2}" -- \
                sh -c "echo $1.$n >>'$LOG'; echo $1.$n >>'$LOG'" || exit 1
        done
    }
    export -f loop
    export LOG
    bg one bash -c "loop one $a $b $c"
    bg two bash -c "loop two $c $b $a"
    finish one 100
    [[ $status == 0 ]]
    finish two 100
    [[ $status == 0 ]]
    no_overlap
    [[ $(wc -l <"$LOG") == 60 ]]
    no_waiters "$a" "$b" "$c"
}

@test "--any in a Cluster: readers together, and semaphores" {
    bg r rlock read --any "$a" "$b" -- sh -c "$told; exec sleep 1000"
    poll_until 10 contains "$T/r.out" "KEY=$a"
    run -0 rlock read -n --any "$a" "$b" -- sh -c "$told"
    [[ ${lines[0]} == "KEY=$a" && ${lines[1]} == MODE=shared ]]
    run -0 rlock write -n --any "$a" "$b" -- sh -c "$told"
    [[ ${lines[0]} == "KEY=$b" ]]
    hold s "$c" --limit 2
    run -0 rlock run -n --limit 2 --any "$c" "$b" -- sh -c "$told; echo \$RLOCK_SLOT"
    [[ ${lines[0]} == "KEY=$c" && ${lines[3]} == 2 ]]
    # Two readers wait for one writer, and have the KEY together.
    kill "${pid[r]}" "${pid[s]}"
    finish r
    finish s
    hold x "$a"
    hold y "$b"
    local name
    for name in one two; do
        bg "$name" rlock read --any "$a" "$b" -- sh -c "echo $name >>'$LOG'; exec sleep 1000"
        poll_until 10 has_place "$name" "$b" "$([[ $name == one ]] && echo 1 || echo 2)"
    done
    kill "${pid[y]}"
    poll_until 10 contains "$LOG" one
    poll_until 10 contains "$LOG" two
    holds one "$b"
    holds two "$b"
}

@test "--any in a Cluster: --latest sends away those of the group; --priority is served first" {
    hold x "$a"
    hold y "$b"
    bg old rlock run --latest --group deploy --any "$a" "$b" -- true
    poll_until 10 has_place old "$b" 1
    bg new rlock run --latest --group deploy --any "$a" "$b" -- \
        sh -c "echo new >>'$LOG'; exec sleep 1000"
    finish old 20
    [[ $status == 75 ]]
    contains "$T/old.err" superseded
    poll_until 10 has_place new "$a" 1
    poll_until 10 has_place new "$b" 1
    bg urgent rlock run --priority 5 --any "$a" "$b" -- sh -c "echo urgent >>'$LOG'"
    poll_until 10 has_place urgent "$a" 1
    poll_until 10 has_place urgent "$b" 1
    kill "${pid[x]}"
    finish urgent 20
    poll_until 10 contains "$LOG" new
    [[ $(xargs <"$LOG") == 'urgent new' ]]
}

@test "H45 --any --replace in a Cluster asks the holder of one KEY alone" {
    stay x "$a"
    stay y "$b"
    bg w rlock run --any --replace "$a" "$b" -- sh -c "$told"
    finish w 20
    [[ $status == 0 ]]
    contains "$T/w.out" "KEY=$a"
    finish x
    [[ $status == 79 ]]
    ends_well y
}
