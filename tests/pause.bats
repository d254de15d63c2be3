# rlock pause, resume: no new owner gets the lock, in any mode, unless it nests in a holder.

load helper

# there_are HOLDERS WAITERS
there_are() {
    [[ $(rlock status --json k | jq -c '.[0] | [.holders, .waiters | length]') == "[$1,$2]" ]]
}

@test "holders continue; new owners are refused, and read why; a release hands over nothing" {
    run -1 rlock resume k
    hold a k
    line_up b 1
    prints_nothing 0 pause k 1h -m 'disk full'
    renewed k
    run -0 rlock status k
    [[ $output == *"exclusive, paused"*"paused by $(id -un)@$(hostname) until "* ]]
    [[ $output == *": disk full"* ]]
    terminate a
    there_are 0 1
    for mode in --write --read '--limit=2'; do
        run -75 --separate-stderr rlock run -n "$mode" k -- true
        stderr_line "^rlock: k: not acquired: paused by .* until [-0-9 ]*[0-9]{2}:[0-9]{2} \([0-9a-z]+ left\): disk full$"
    done
    line_up c 2
    poll_until 15 contains "$T/c.err" 'waiting for k, paused by'
    # Listed though it is free.
    run -0 rlock status
    [[ ${lines[0]} == *LABEL && ${lines[1]} == *"free, paused"*"paused by "*": disk full" ]]
    status_json '.[0] | .reserved == null and .stored_limit == null and (.paused |
        .user == "'"$(id -un)"'" and .host == "'"$(hostname)"'" and .reason == "disk full" and
        .left_ms > 3500000 and .since < .until and (.until | test("Z$")))'
    prints 0 '*no lock is held, 2 waiting, 1 paused |*' check
    there_are 0 2
    rlock resume k
    poll_until 10 there_are 1 1
    run -1 rlock resume k
}

# The pause lasts for 6 s, so that the first try outside of the holder is refused, and the next one
# waits for its end.
@test "a paused lock: a nested run gets it at once, and a waiter when the time is over" {
    run -0 rlock run k -- \
        sh -c 'rlock pause k 6s -m short && rlock run -n k -- echo nested'
    [[ $output == nested ]]
    run -75 rlock run -n k -- true
    run -0 rlock run -w 60s k -- true
    run -1 rlock resume k
}

@test "pause says whose pause it replaces, that a KEY is new, and on a terminal what is so now" {
    run -0 --separate-stderr rlock pause k 1h -m first
    stderr_line '^rlock: pause: k was never used, or not for a week: is it spelt right\?$'
    run -0 --separate-stderr rlock pause k 2h -m second
    stderr_line '^rlock: pause: replaces: k: paused by .* until .* \(.* left\): first$'
    rlock pause 'g*' 1h -m one
    says 0 '^rlock: pause: replaces: g\*: paused by .* left\): one$' pause 'g*' 2h -m two
    on_terminal rlock pause k 1h -m third <<'EOF'
expect pause: replaces: k: paused by .*: second
expect pause: k is paused until [-0-9: ]+ \(1h00m left\)
status 0
EOF
    shows 0 'resume: k is not paused any more' resume k
    shows 0 'reserve: k is reserved by you until [-0-9: ]+ \(1h00m left\)' reserve k 1h -m mine
    prints 0 '*k *reserved*' status
    shows 0 'extend: k is reserved by you until [-0-9: ]+ \(2h00m left\)' extend k 2h
    shows 0 'limit: s has a limit of 3 now' limit s 3
}

@test "pause and resume refuse wrong times, no reason, latches, and stores without pauses" {
    says 64 '7d at most' pause -u unix:///nowhere k 8d -m x

    for time in 0 -1s 500ms x ''; do
        run -64 rlock pause k "$time" -m x
    done
    run -64 rlock pause k 1h
    run -64 rlock pause k 1h -m ''
    run -64 rlock pause k
    run -64 rlock pause 'k *' 1h -m x
    run -64 rlock pause 'k*' -m x
    run -64 rlock pause 'k*' 1h 'l*' -m x
    run -64 rlock resume k 1h
    says 64 'zookeeper:// has no pause' pause -u zookeeper://127.0.0.1:1 k 1h -m x
    says 64 'zookeeper:// has no pause' resume -u zookeeper://127.0.0.1:1 k
    says 64 'a quorum has no pause' pause -u redis://127.0.0.1:1 -u redis://127.0.0.1:2 k 1h -m x
    says 64 'cluster:// has no pause of a GLOB$' pause -u cluster://127.0.0.1:1 'k*' 1h -m x
    says 64 'cluster:// has no pause of a GLOB$' resume -u cluster://127.0.0.1:1 'k*'
    rlock latch set gate 1
    run -78 rlock pause gate 1h -m x
    run -1 rlock resume k
}

@test "a GLOB: locks that are held, free, or new; holders continue, new owners are refused" {
    says 1 '^rlock: resume: ci/\* is not paused$' resume 'ci/*'
    hold a ci/held --label building
    queued ci/held bg b rlock run ci/held -- sleep 1000
    rlock run ci/used -- true
    prints_nothing 0 pause 'ci/*' 1h -m 'disk full'
    renewed ci/held
    terminate a
    for key in ci/held ci/used ci/new; do
        for mode in --write --read --limit=2; do
            run -75 --separate-stderr rlock run -n "$mode" "$key" -- true
            stderr_line "^rlock: $key: not acquired: paused by .* until [-0-9 ]*[0-9]{2}:[0-9]{2} \([0-9a-z]+ left\): disk full\$"
        done
    done
    has_waiters ci/held 1
    run -75 rlock reserve -n ci/new 1h -m mine
    run -75 rlock run -n ci/new else -- true
    prints 0 else run --any ci/new else -- sh -c 'echo "$RLOCK_KEY"'
    prints 0 'not meant' run -n cis -- echo 'not meant'
    # A refused request leaves nothing there.
    [[ ! $(redis keys '*{ci/new}*') ]]
    prints 0 '*no lock is held, 1 waiting, 1 paused |*' check
    run -0 rlock metrics
    [[ $output == *'rlock_paused{key="ci/used"} 1'* ]]
    run -0 rlock resume 'ci/*'
    poll_until 10 held ci/held
    prints 0 new run -n ci/new -- echo new
    [[ $(redis exists 'rlock:!paused') == *0 ]]
    run -1 rlock resume 'ci/*'
}

@test "a backslash escapes in a KEY and in a GLOB, as for status" {
    rlock pause 'a\*b' 1h -m x
    rlock pause 'a\\b' 1h -m x
    rlock pause 'c\**' 1h -m x
    run -0 rlock run -n axb 'a\*b' cxd -- true
    for key in 'a*b' 'a\b' 'c*d'; do
        run -75 rlock run -n "$key" -- true
    done
    status_json 'a\*b' 'map([.key, .paused.glob]) == [["a*b", null]]'
    rlock resume 'a\*b'
    rlock resume 'a\\b'
    run -0 rlock run -n 'a*b' 'a\b' -- true
}

@test "a GLOB: status shows it without any lock, and says which pause a lock is under" {
    rlock pause 'ci/*' 1h -m 'disk full'
    rlock pause '*/deploy' 2h -m "$(printf 'new\033disk')"
    line="paused by $(id -un)@$(hostname) until"
    run -0 --separate-stderr rlock status
    [[ ! $output && ${stderr_lines[0]} == 'rlock: no locks' ]]
    [[ ${stderr_lines[1]} == 'rlock: */deploy: '"$line"*' (2h00m left): new\x1bdisk' ]]
    [[ ${stderr_lines[2]} == 'rlock: ci/*: '"$line"*' left): disk full' ]]
    run -0 --separate-stderr rlock status 'ci/t*'
    [[ ${#stderr_lines[@]} == 3 ]]
    run -0 --separate-stderr rlock status 'other-*'
    [[ ${#stderr_lines[@]} == 2 && ${stderr_lines[1]} == 'rlock: */deploy: '* ]]
    prints_nothing 0 status -q
    quiet 0 status --json
    json 'map([.key, .glob, .paused.reason]) == [[null, "*/deploy", "new\u001bdisk"], [null, "ci/*", "disk full"]]'
    json '.[1].paused | .by == "'"$(id -un)@$(hostname)"'" and .glob == "ci/*" and .since < .until'
    run -0 rlock metrics
    [[ $output == *'rlock_paused{glob="ci/*"} 1'* ]]
    run -0 rlock check --paused 1h
    run -2 rlock check --paused 1ms
    [[ $output == *'ci/*: paused for '*', more than 1ms: paused by '*' left): disk full'* ]]
    quiet 0 status ci/test
    [[ ${lines[0]} == 'ci/test: free, paused, 0 waiting' ]]
    [[ ${lines[1]} == "  paused, as all of ci/*, by "*': disk full' && ${#lines[@]} == 2 ]]
    run -0 rlock status --json ci/deploy ci/test qa/deploy qa/test
    json 'map([.key, .paused.glob, .paused.reason]) == [["ci/deploy", "*/deploy", "new\u001bdisk"],
        ["ci/test", "ci/*", "disk full"], ["qa/deploy", "*/deploy", "new\u001bdisk"],
        ["qa/test", null, null]]'
    bg_says a 'waiting for ci/test, paused by' rlock run ci/test -- sleep 1000
    run -0 --separate-stderr rlock status
    [[ ${lines[1]} == 'ci/test '*'free, paused'*'paused, as all of ci/*, by '* ]]
    [[ ${#lines[@]} == 2 ]]
    [[ ${#stderr_lines[@]} == 2 ]]
    says 1 '^rlock: resume: ci/test is paused as all of ci/\*: resume that$' resume ci/test
}

# The resume removes the pause from the list first, and then from each lock. Removing it from the
# list here leaves the state between the two.
@test "a GLOB: a resume that was killed between the list and the locks is done by the next" {
    rlock run k -- true
    rlock pause 'k*' 1h -m x
    redis hdel 'rlock:!paused' p
    run -75 rlock run -n k -- true
    run -0 rlock resume 'k*'
    run -0 rlock run -n k -- true
    run -1 rlock resume 'k*'
}

# So many locks take several calls. "rlocks" begins like the prefix "rlock", but is another one.
@test "a GLOB pauses hundreds of locks, but not a latch nor a key of another prefix" {
    for ((number = 0; number < 350; number++)); do
        echo "hset rlock:{k$number} k lock/1 f 17"
        echo "hset rlocks:{k$number} k lock/1 f 17"
    done | redis-cli -s "$REDIS_SOCK" >"$T/replies"
    rlock latch set kgate 1
    rlock pause 'k*' 1h -m x
    status_json 'length == 351 and all(.paused.glob == "k*") and .[350].key == null'
    [[ ! $(redis hget 'rlocks:{k7}' p) ]]
    run -75 rlock latch status kgate
    run -0 rlock resume 'k*'
    status_json 'length == 0'
}

@test "a GLOB among many keys of others: a store that answers for long is not told as away" {
    as_default_user
    redis eval 'for i = 1, 9000 do redis.call("SET", "other" .. i, "") end' 0
    rlock run k -- true
    start_proxy
    # Each of nine parts of the list takes that long. A machine that stands still is silent, too, so
    # the test tries again, twice at most.
    fault delay down 400
    for _ in 1 2 3; do
        rlock pause 'k*' 1h -m x
        refused 0 resume 'k*' -u "redis://${proxy[proxy]}"
        [[ $(rlock status --json k) != *glob* ]]
        [[ $stderr ]] || break
    done
    [[ ! $stderr ]]
}

# with_lost_answer TEXT COMMAND...: the answer to the request with TEXT is lost, and its connection.
with_lost_answer() {
    fault pass
    fault on up "$1" cut down 0 close
    quiet 0 "${@:2}" -u "redis://rlock:pw@${proxy[proxy]}"
}

# The second resume finds nothing to do, so the first one counted although its answer was lost.
@test "H1 a pause and its end whose answer is lost are asked for again, and count" {
    rlock run k -- true
    start_proxy
    for name in k 'k*'; do
        with_lost_answer vanished pause "$name" 1h -m vanished
        run -75 rlock run -n k -- true
        with_lost_answer resume resume "$name"
        run -0 rlock run -n k -- true
        run -1 rlock resume "$name"
    done
}

# The proxy holds the answers back from the request on that has "vanished" in it, the reason of the
# pause. status sees over another connection that the pause is made.
@test "a pause whose answers are all lost: exit 69, and it may have been made" {
    rlock run k -- true
    start_proxy
    fault on up vanished hold down
    bg a rlock pause k 1h -m vanished --connect-timeout 4s -u "redis://rlock:pw@${proxy[proxy]}"
    poll_until 10 eval 'rlock status k 3>&- | grep -q vanished'
    fault blackhole
    ends_with a 69
    grep -qx 'rlock: k may have been paused anyway' "$T/a.err"
}
