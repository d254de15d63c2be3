# rlock renew and release: what a script does with a lock that it has acquired.

load helper

NOBODY=00000000-0000-0000-0000-000000000000

# The lease of KEY's only holder, in ms.
lease_left() {
    "$RLOCK" status --json "$1" 3>&- | jq '.[0].holders[0].lease_left_ms'
}

# take NAME KEY [OPTION...]: NAME becomes the token.
take() {
    local -n token=$1
    token=$("$RLOCK" acquire "${@:2}" 3>&-)
}

@test "renew extends by the lease that was asked for, or by --lease" {
    take mine --lease 60s k
    run -0 rlock renew --owner "$mine" --lease 5s k
    within 3000 5000 "$(lease_left k)"
    run -0 --separate-stderr rlock renew --owner "$mine" k
    [[ $output == "" && $stderr == "" ]]
    within 3000 5000 "$(lease_left k)"
    RLOCK_OWNER=$mine run -0 rlock renew --lease 1h k
    within 3500000 3600000 "$(lease_left k)"
    run -64 rlock renew --owner "$mine" --lease 900ms k
    within 3500000 3600000 "$(lease_left k)"
    echo 'lease = 7s' >"$T/config" # is for acquisitions
    RLOCK_CONFIG=$T/config run -0 rlock renew --owner "$mine" k
    within 3500000 3600000 "$(lease_left k)"
}

@test "renewed again and again it lasts" {
    local i
    take mine --lease 1s k
    for i in 1 2 3 4 5; do
        sleep 0.5
        run -0 rlock renew --owner "$mine" k
    done
    run -75 rlock run -n k -- true
}

@test "renewing or releasing what one does not hold: 1, a line, and nothing changes" {
    local before
    hold a k --lease 60s
    take mine other
    before=$(redis hgetall 'rlock:{k}' | sed -n '/^h:/p')
    for one in release renew; do
        run -1 --separate-stderr rlock "$one" --owner "$mine" k
        [[ $output == "" && ${#stderr_lines[@]} == 1 ]]
        stderr_line "^rlock: $one: k is not held by that owner, but by .*@$(hostname) pid [0-9]+ \\(sh\\)"
        RLOCK_OWNER=$mine run -1 --separate-stderr rlock "$one" k
        stderr_line '^hint: RLOCK_OWNER names another holder'
        run -1 --separate-stderr rlock "$one" --owner "$NOBODY" free
        [[ ${#stderr_lines[@]} == 1 && $stderr == *"free is not held"* ]]
        run -1 --separate-stderr rlock "$one" -q --owner "$mine" k
        [[ $output == "" && $stderr == "" ]]
    done
    [[ $(redis hgetall 'rlock:{k}' | sed -n '/^h:/p') == "$before" ]]
    run -0 rlock release --owner "$mine" other
    run -1 rlock release --owner "$mine" other
}

@test "usage of renew and release" {
    local one
    for one in release renew; do
        run -64 --separate-stderr rlock "$one" k
        stderr_line '^hint: --owner TOKEN or RLOCK_OWNER'
        run -64 rlock "$one" --owner "$NOBODY"
        run -64 rlock "$one" --owner "$NOBODY" a b
        run -64 rlock "$one" --owner "$NOBODY" 'a b'
        run -64 rlock "$one" --owner "$NOBODY" k -- true
        run -64 rlock "$one" --owner me -u unix:///nowhere k
        RLOCK_OWNER=me run -78 rlock "$one" -u unix:///nowhere k
        RLOCK_OWNER="" run -64 rlock "$one" k
        run -0 rlock "$one" --help
        [[ $output == *Example*"rlock $one"* ]]
    done
}

@test "H1 a release whose answer is lost is asked for again, and counts" {
    take warm warm
    run -0 rlock release --owner "$warm" warm # the server knows the scripts from here on
    start_proxy
    take mine k
    fault on up EVALSHA drop down
    run -0 --separate-stderr rlock release -u "redis://${proxy[proxy]}" --connect-timeout 1s --owner "$mine" k
    [[ $stderr == "" ]]
    run -0 rlock status -q k
    take mine k
    fault pass
    fault on up EVALSHA cut down 0 close
    run -0 rlock release -u "redis://${proxy[proxy]}" --owner "$mine" k
    run -0 rlock status -q k
}

@test "a renewal whose answer is lost is asked for again" {
    start_proxy
    take mine --lease 60s k
    run -0 rlock renew --owner "$mine" k
    fault on up EVALSHA cut down 0 close
    run -0 rlock renew -u "redis://${proxy[proxy]}" --owner "$mine" --lease 100s k
    within 90000 100000 "$(lease_left k)"
}

@test "a server that hangs: 69 in its time" {
    local start
    take mine k
    kill -STOP "$(redis_pid)"
    start=$(now_ms)
    run -69 --separate-stderr rlock release --connect-timeout 1s --owner "$mine" k
    within 900 14000 $(($(now_ms) - start))
    kill -CONT "$(redis_pid)"
}
