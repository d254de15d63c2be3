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
    run -0 --separate-stderr rlock pause k 1h -m 'disk full'
    [[ ! $output && ! $stderr ]]
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
    run -0 rlock check
    [[ $output == *'no lock is held, 2 waiting, 1 paused |'* ]]
    there_are 0 2
    rlock resume k
    poll_until 10 there_are 1 1
    run -1 rlock resume k
}

@test "a nested run gets the lock; the end of the time lets waiters in, unasked" {
    run -0 rlock run k -- sh -c \
        '"$0" pause k 3s -m short && "$0" run -n k -- echo nested' "$RLOCK"
    [[ $output == nested ]]
    run -75 rlock run -n k -- true
    run -0 rlock run -w 20s k -- true
    run -1 rlock resume k
}

@test "whose pause is replaced, a KEY that was never used, and on a terminal the new state" {
    run -0 --separate-stderr rlock pause k 1h -m first
    stderr_line '^rlock: pause: k was never used, or not for a week: is it spelt right\?$'
    run -0 --separate-stderr rlock pause k 2h -m second
    stderr_line '^rlock: pause: replaces: k: paused by .* until .* \(.* left\): first$'
    rlock pause 'g*' 1h -m one
    run -0 --separate-stderr rlock pause 'g*' 2h -m two
    stderr_line '^rlock: pause: replaces: g\*: paused by .* left\): one$'
    "$TESTS/terminal.py" "$RLOCK" pause k 1h -m third 3>&- <<'EOF'
expect pause: replaces: k: paused by .*: second
expect pause: k is paused until [-0-9: ]+ \(1h00m left\)
status 0
EOF
    "$TESTS/terminal.py" "$RLOCK" resume k 3>&- <<'EOF'
expect resume: k is not paused any more
status 0
EOF
    "$TESTS/terminal.py" "$RLOCK" reserve k 1h -m mine 3>&- <<'EOF'
expect reserve: k is reserved by you until [-0-9: ]+ \(1h00m left\)
status 0
EOF
    run -0 rlock status
    [[ $output == *"k "*reserved* ]]
    "$TESTS/terminal.py" "$RLOCK" extend k 2h 3>&- <<'EOF'
expect extend: k is reserved by you until [-0-9: ]+ \(2h00m left\)
status 0
EOF
    "$TESTS/terminal.py" "$RLOCK" limit s 3 3>&- <<'EOF'
expect limit: s has a limit of 3 now
status 0
EOF
}

@test "wrong times, no words, globs, latches, stores that cannot" {
    run -64 rlock pause -u unix:///nowhere k 8d -m x
    [[ $output == *'7d at most'* ]]

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
    run -64 --separate-stderr rlock pause -u zookeeper://127.0.0.1:1 k 1h -m x
    stderr_line 'zookeeper:// has no pause'
    run -64 --separate-stderr rlock resume -u zookeeper://127.0.0.1:1 k
    stderr_line 'zookeeper:// has no pause'
    run -64 --separate-stderr rlock pause -u redis://127.0.0.1:1 -u redis://127.0.0.1:2 k 1h -m x
    stderr_line 'a quorum has no pause'
    run -64 --separate-stderr rlock pause -u cluster://127.0.0.1:1 'k*' 1h -m x
    stderr_line 'cluster:// has no pause of a GLOB$'
    run -64 --separate-stderr rlock resume -u cluster://127.0.0.1:1 'k*'
    stderr_line 'cluster:// has no pause of a GLOB$'
    rlock latch set gate 1
    run -78 rlock pause gate 1h -m x
    run -1 rlock resume k
}

@test "a GLOB: locks that are held, free, or new; holders continue, new owners are refused" {
    run -1 --separate-stderr rlock resume 'ci/*'
    stderr_line '^rlock: resume: ci/\* is not paused$'
    hold a ci/held --label building
    bg b rlock run ci/held -- sleep 1000
    poll_until 10 has_waiters ci/held 1
    rlock run ci/used -- true
    run -0 --separate-stderr rlock pause 'ci/*' 1h -m 'disk full'
    [[ ! $output && ! $stderr ]]
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
    run -0 rlock run --any ci/new else -- sh -c 'echo "$RLOCK_KEY"'
    [[ $output == else ]]
    run -0 rlock run -n cis -- echo 'not meant'
    [[ $output == 'not meant' ]]
    # A refused request leaves nothing there.
    [[ ! $(redis keys '*{ci/new}*') ]]
    run -0 rlock check
    [[ $output == *'no lock is held, 1 waiting, 1 paused |'* ]]
    run -0 rlock metrics
    [[ $output == *'rlock_paused{key="ci/used"} 1'* ]]
    run -0 rlock resume 'ci/*'
    poll_until 10 held ci/held
    run -0 rlock run -n ci/new -- echo new
    [[ $output == new ]]
    [[ $(redis exists 'rlock:!paused') == *0 ]]
    run -1 rlock resume 'ci/*'
}

@test "a backslash escapes in a KEY and in a GLOB, as for status" {
    rlock pause 'a\*b' 1h -m x
    rlock pause 'a\\b' 1h -m x
    rlock pause 'c\**' 1h -m x
    run -0 rlock run -n axb 'a\*b' cxd -- true
    local key
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
    run -0 --separate-stderr rlock status -q
    [[ ! $output && ! $stderr ]]
    run -0 --separate-stderr rlock status --json
    [[ ! $stderr ]]
    json 'map([.key, .glob, .paused.reason]) == [[null, "*/deploy", "new\u001bdisk"], [null, "ci/*", "disk full"]]'
    json '.[1].paused | .by == "'"$(id -un)@$(hostname)"'" and .glob == "ci/*" and .since < .until'
    run -0 rlock metrics
    [[ $output == *'rlock_paused{glob="ci/*"} 1'* ]]
    run -0 rlock check --paused 1h
    run -2 rlock check --paused 1ms
    [[ $output == *'ci/*: paused for '*', more than 1ms: paused by '*' left): disk full'* ]]
    run -0 --separate-stderr rlock status ci/test
    [[ ! $stderr ]]
    [[ ${lines[0]} == 'ci/test: free, paused, 0 waiting' ]]
    [[ ${lines[1]} == "  paused, as all of ci/*, by "*': disk full' && ${#lines[@]} == 2 ]]
    run -0 rlock status --json ci/deploy ci/test qa/deploy qa/test
    json 'map([.key, .paused.glob, .paused.reason]) == [["ci/deploy", "*/deploy", "new\u001bdisk"],
        ["ci/test", "ci/*", "disk full"], ["qa/deploy", "*/deploy", "new\u001bdisk"],
        ["qa/test", null, null]]'
    bg a rlock run ci/test -- sleep 1000
    poll_until 15 contains "$T/a.err" 'waiting for ci/test, paused by'
    run -0 --separate-stderr rlock status
    [[ ${lines[1]} == 'ci/test '*'free, paused'*'paused, as all of ci/*, by '* ]]
    [[ ${#lines[@]} == 2 ]]
    [[ ${#stderr_lines[@]} == 2 ]]
    run -1 --separate-stderr rlock resume ci/test
    stderr_line '^rlock: resume: ci/test is paused as all of ci/\*: resume that$'
}

@test "a GLOB: a resume that was killed between the list and the locks is done by the next" {
    rlock run k -- true
    rlock pause 'k*' 1h -m x
    redis hdel 'rlock:!paused' p
    run -75 rlock run -n k -- true
    run -0 rlock resume 'k*'
    run -0 rlock run -n k -- true
    run -1 rlock resume 'k*'
}

@test "a GLOB: hundreds of locks, latches and keys of other prefixes among them" {
    for ((number = 0; number < 350; number++)); do
        echo "hset rlock:{k$number} k lock/1 f 17"
        echo "hset rlocks:{k$number} k lock/1 f 17"
    done | redis >"$T/replies"
    rlock latch set kgate 1
    rlock pause 'k*' 1h -m x
    status_json 'length == 351 and all(.paused.glob == "k*") and .[350].key == null'
    [[ ! $(redis hget 'rlocks:{k7}' p) ]]
    run -75 rlock latch status kgate
    run -0 rlock resume 'k*'
    status_json 'length == 0'
}

# lost TEXT COMMAND...: the answer to the request with TEXT is lost, and its connection.
lost() {
    fault pass
    fault on up "$1" cut down 0 close
    run -0 --separate-stderr rlock "${@:2}" -u "redis://rlock:pw@${proxy[proxy]}"
    [[ $stderr == "" ]]
}

@test "H1 a pause and its end whose answer is lost are asked for again, and count" {
    rlock run k -- true
    start_proxy
    for name in k 'k*'; do
        lost vanished pause "$name" 1h -m vanished
        run -75 rlock run -n k -- true
        lost resume resume "$name"
        run -0 rlock run -n k -- true
        run -1 rlock resume "$name"
    done
}

@test "a pause whose answers are all lost: 69, and it may have been made" {
    rlock run k -- true
    start_proxy
    fault on up vanished hold down
    bg a rlock pause k 1h -m vanished --connect-timeout 1s -u "redis://rlock:pw@${proxy[proxy]}"
    poll_until 10 eval '"$RLOCK" status k 3>&- | grep -q vanished'
    fault blackhole
    finish a
    [[ $status == 69 ]]
    grep -qx 'rlock: k may have been paused all the same' "$T/a.err"
}
