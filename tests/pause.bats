# rlock pause, resume: nobody new is let in, in any mode, but those who nest in a holder.

load helper

# there_are HOLDERS WAITERS
there_are() {
    [[ $(rlock status --json k | jq -c '.[0] | [.holders, .waiters | length]') == "[$1,$2]" ]]
}

@test "holders go on, nobody new is let in, and reads why; a release hands it over to nobody" {
    run -1 rlock resume k
    hold a k
    line_up b 1
    run -0 --separate-stderr rlock pause k 1h -m 'disk full'
    [[ ! $output && ! $stderr ]]
    renewed k
    run -0 rlock status k
    [[ $output == *"exclusive, paused"*"paused by $(id -un)@$(hostname) for another "* ]]
    [[ $output == *": disk full"* ]]
    kill "${pid[a]}"
    finish a
    there_are 0 1
    local mode
    for mode in --write --read '--limit=2'; do
        run -75 --separate-stderr rlock run -n "$mode" k -- true
        stderr_line "^rlock: k: not acquired: paused by .* for another .*, label disk full$"
    done
    line_up c 2
    poll_until 15 contains "$T/c.err" 'waiting for k, paused by'
    # Listed though nobody holds it.
    run -0 rlock status
    [[ $output == *"free, paused"* ]]
    run -0 rlock status --json
    json '.[0] | .reserved == null and .stored_limit == null and (.paused |
        .user == "'"$(id -un)"'" and .host == "'"$(hostname)"'" and .reason == "disk full" and
        .left_ms > 3500000 and .since < .until and (.until | test("Z$")))'
    run -0 rlock check
    [[ $output == *'no lock is held, 2 waiting, 1 paused |'* ]]
    there_are 0 2
    rlock resume k
    poll_until 10 there_are 1 1
    run -1 rlock resume k
}

@test "readers beside readers, a semaphore with room: nobody joins; all come when it ends" {
    hold r k --read
    rlock pause k 1h -m x
    run -75 rlock run -n --read k -- true
    line_up s 1 --read
    line_up t 2 --read
    rlock resume k
    poll_until 10 there_are 3 0
    hold l other --limit 2
    rlock pause other 1h -m x
    run -75 rlock run -n --limit 2 other -- true
    rlock resume other
    run -0 rlock run -n --limit 2 other -- true
}

@test "who nests in a holder is let in; the end of its time lets in who waits, unasked" {
    run -0 rlock run k -- sh -c \
        '"$0" pause k 3s -m short && "$0" run -n k -- echo nested' "$RLOCK"
    [[ $output == nested ]]
    run -75 rlock run -n k -- true
    run -0 rlock run -w 20s k -- true
    run -1 rlock resume k
}

@test "wrong times, no words, globs, latches, stores that cannot" {
    local time
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
    run -64 --separate-stderr rlock pause -u mysql://127.0.0.1:1/locks k 1h -m x
    stderr_line 'mysql:// has no pause'
    run -64 --separate-stderr rlock resume -u postgresql://127.0.0.1:1/locks k
    stderr_line 'postgresql:// has no pause'
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

@test "a GLOB: locks that are held, free, or new; who holds one goes on, nobody else is let in" {
    run -1 --separate-stderr rlock resume 'ci/*'
    stderr_line '^rlock: resume: ci/\* is not paused$'
    hold a ci/held --label building
    bg b rlock run ci/held -- sleep 1000
    poll_until 10 has_waiters ci/held 1
    rlock run ci/used -- true
    run -0 --separate-stderr rlock pause 'ci/*' 1h -m 'disk full'
    [[ ! $output && ! $stderr ]]
    renewed ci/held
    kill "${pid[a]}"
    finish a
    local key mode
    for key in ci/held ci/used ci/new; do
        for mode in --write --read --limit=2; do
            run -75 --separate-stderr rlock run -n "$mode" "$key" -- true
            stderr_line "^rlock: $key: not acquired: paused by .* for another .*, label disk full\$"
        done
    done
    has_waiters ci/held 1
    run -75 rlock reserve -n ci/new 1h -m mine
    run -75 rlock run -n ci/new else -- true
    run -0 rlock run --any ci/new else -- sh -c 'echo "$RLOCK_KEY"'
    [[ $output == else ]]
    run -0 rlock run -n cis -- echo 'not meant'
    [[ $output == 'not meant' ]]
    # Who was refused has left nothing there.
    [[ ! $(redis keys '*{ci/new}*') ]]
    run -0 rlock check
    [[ $output == *'no lock is held, 1 waiting, 2 paused |'* ]]
    run -0 rlock metrics
    [[ $output == *'rlock_paused{key="ci/used"} 1'* ]]
    run -0 rlock resume 'ci/*'
    poll_until 10 held ci/held
    run -0 rlock run -n ci/new -- echo new
    [[ $output == new ]]
    [[ $(redis exists 'rlock:!paused') == *0 ]]
    run -1 rlock resume 'ci/*'
}

@test "a GLOB: status tells it where no lock is there yet, and which pause a lock is under" {
    rlock pause 'ci/*' 1h -m 'disk full'
    rlock pause '*/deploy' 2h -m "$(printf 'new\033disk')"
    local line
    line="paused by $(id -un)@$(hostname) for another"
    run -0 --separate-stderr rlock status
    [[ ! $output && ${stderr_lines[0]} == 'rlock: no locks' ]]
    [[ ${stderr_lines[1]} == 'rlock: */deploy: '"$line 2h00m"*': new\x1bdisk' ]]
    [[ ${stderr_lines[2]} == 'rlock: ci/*: '"$line 1h00m"*': disk full' ]]
    run -0 --separate-stderr rlock status 'ci/t*'
    [[ ${#stderr_lines[@]} == 3 ]]
    run -0 --separate-stderr rlock status 'other-*'
    [[ ${#stderr_lines[@]} == 2 && ${stderr_lines[1]} == 'rlock: */deploy: '* ]]
    run -0 --separate-stderr rlock status -q
    [[ ! $output && ! $stderr ]]
    run -0 --separate-stderr rlock status --json
    [[ $output == '[]' && ! $stderr ]]
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
    [[ ${lines[1]} == 'ci/test '*'free, paused'* && ${#lines[@]} == 2 ]]
    [[ ${#stderr_lines[@]} == 2 ]]
    run -1 --separate-stderr rlock resume ci/test
    stderr_line '^rlock: resume: ci/test is paused as all of ci/\*: resume that$'
}

@test "a GLOB: the end of its time lets in who waits, unasked; resume does, too, in their order" {
    local began=$EPOCHREALTIME
    rlock pause 'k*' 3s -m short
    run -0 rlock run -w 30s k -- true
    ((${EPOCHREALTIME/./} - ${began/./} > 2900000))
    run -1 rlock resume 'k*'
    redis flushall
    rlock pause 'k*' 1h -m long
    line_up r 1 --read
    line_up s 2 --read
    line_up w 3
    there_are 0 3
    rlock resume 'k*'
    poll_until 10 there_are 2 1
    kill "${pid[r]}" "${pid[s]}"
    poll_until 10 there_are 1 0
    run -75 --separate-stderr rlock run -n k -- true
    stderr_line 'not acquired: held by'
}

@test "a GLOB: who nests in a holder is let in, at whatever depth" {
    run -0 rlock run k -- sh -c '"$0" pause "*" 1h -m x && "$0" run -n k -- "$0" run -n k -- \
        echo nested; "$0" run -n new -- echo new; echo "$?"' "$RLOCK"
    [[ $output == $'nested\n'*75 ]]
}

@test "GLOBs that overlap, and a KEY: the latest end counts; each is ended by its own words" {
    rlock run k -- true
    rlock pause 'k*' 2h -m 'the second'
    rlock pause '*' 3h -m 'the third'
    rlock pause k 1h -m 'the first'
    local key
    for key in k knew; do
        run -75 --separate-stderr rlock run -n "$key" -- true
        stderr_line 'label the third$'
    done
    rlock resume '*'
    for key in k knew; do
        run -75 --separate-stderr rlock run -n "$key" -- true
        stderr_line 'label the second$'
    done
    rlock resume 'k*'
    run -0 rlock run -n knew -- true
    run -75 --separate-stderr rlock run -n k -- true
    stderr_line 'label the first$'
    rlock resume k
    run -0 rlock run -n k -- true
    # The same words: in place of the former one.
    rlock pause 'k*' 2h -m before
    rlock pause 'k*' 1h -m now
    run -75 --separate-stderr rlock run -n k -- true
    stderr_line 'for another (59m5.s|1h00m).*label now$'
    run -0 rlock resume 'k*'
    run -0 rlock run -n k -- true
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
    local number
    for ((number = 0; number < 350; number++)); do
        echo "hset rlock:{k$number} k lock/1 f 17"
        echo "hset rlocks:{k$number} k lock/1 f 17"
    done | redis >"$T/replies"
    rlock latch set kgate 1
    rlock pause 'k*' 1h -m x
    run -0 rlock status --json
    json 'length == 350 and all(.paused.glob == "k*")'
    [[ ! $(redis hget 'rlocks:{k7}' p) ]]
    run -75 rlock latch status kgate
    run -0 rlock resume 'k*'
    run -0 rlock status --json
    json 'length == 0'
}
