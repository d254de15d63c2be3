# rlock renew and release: what a script does with a lock that it has acquired.

load helper

@test "renew extends by the lease that was asked for, or by --lease" {
    mine=$(rlock acquire --lease 60s k)
    run -0 rlock renew --owner "$mine" --lease 15s k
    within 1 15000 "$(lease_left k)"
    prints_nothing 0 renew --owner "$mine" k
    within 1 15000 "$(lease_left k)"
    RLOCK_OWNER=$mine run -0 rlock renew --lease 1h k
    within 3500000 3600000 "$(lease_left k)"
    run -64 rlock renew --owner "$mine" --lease 900ms k
    within 3500000 3600000 "$(lease_left k)"
    echo 'lease = 7s' >"$T/config" # is for acquisitions
    RLOCK_CONFIG=$T/config run -0 rlock renew --owner "$mine" k
    within 3500000 3600000 "$(lease_left k)"
}

@test "a lease that has run out is not held any more, also if no other owner has taken it" {
    mine=$(rlock acquire --lease 1s k)
    poll_until 10 is_free k
    for one in renew release; do
        run -1 --separate-stderr rlock "$one" --owner "$mine" k
        [[ $output == "" && ${#stderr_lines[@]} == 1 ]]
        stderr_line "^rlock: $one: k is not held: it was released, or its lease has run out\$"
        is_free k
    done
    other=$(rlock acquire k)
    run -1 rlock renew --owner "$mine" k
    run -1 rlock release --owner "$mine" k
    held k
    run -0 rlock release --owner "$other" k
}

@test "renewing or releasing what one does not hold: exit 1, a line, and nothing changes" {
    hold a k --lease 60s
    mine=$(rlock acquire other)
    before=$(redis hgetall 'rlock:{k}' | sed -n '/^h:/p')
    for one in release renew; do
        run -1 --separate-stderr rlock "$one" --owner "$mine" k
        [[ $output == "" && ${#stderr_lines[@]} == 1 ]]
        stderr_line "^rlock: $one: k is not held by that owner, but by .*@$(hostname) pid [0-9]+ \\(sh\\)"
        RLOCK_OWNER=$mine says 1 '^hint: RLOCK_OWNER names another holder' "$one" k
        run -1 --separate-stderr rlock "$one" --owner "$NO_OWNER" free
        [[ ${#stderr_lines[@]} == 1 && $stderr == *"free is not held"* ]]
        prints_nothing 1 "$one" -q --owner "$mine" k
    done
    [[ $(redis hgetall 'rlock:{k}' | sed -n '/^h:/p') == "$before" ]]
    run -0 rlock release --owner "$mine" other
    run -1 rlock release --owner "$mine" other
}

@test "H162 a run alone renews and releases its lock: its token is refused from anywhere" {
    local refusal
    hold a k --lease 60s
    for one in "renew --lease 1s" renew release; do
        refusal="^rlock: ${one%% *}: k: the token of a run, whose guards count on its lease\$"
        says 1 "$refusal" $one --owner "$(owner_of k)" k
        stderr_line '^hint: rlock force-release k asks the run to stop$'
        prints_nothing 1 $one -q --owner "$(owner_of k)" k
        # From inside: by the run itself, by what nests in it, by an acquisition that nests in it.
        run -0 --separate-stderr rlock run --lease 60s j -- sh -c "
            rlock $one j; [ \$? = 1 ] || exit 2
            rlock run other -- rlock $one j; [ \$? = 1 ] || exit 3
            rlock run j -- rlock $one j; [ \$? = 1 ] || exit 4
            rlock $one other; [ \$? = 1 ] || exit 7
            eval \"\$(rlock acquire --export other)\"; rlock $one j; [ \$? = 1 ] || exit 5
            rlock $one other || exit 6
            rlock release -q other
            rlock status --json j"
        stderr_line "^rlock: ${one%% *}: j: the token of a run"
        json '.[0].holders[0].lease_left_ms > 30000'
    done
    within 30000 60000 "$(lease_left k)"
    terminate a 143
}

@test "H162 one's own acquisition in a run of the same KEY is released, the run's is not" {
    run -0 --separate-stderr rlock run k -- sh -c '
        eval "$(rlock acquire --export k)"
        rlock renew --lease 1h k || exit 2
        rlock release k || exit 3
        rlock release k; [ $? = 1 ] || exit 4
        rlock status -q k; [ $? = 75 ]'
    stderr_line '^rlock: release: k: the token of a run'
}

@test "wrong usage of renew and release: exit 64, or 78 for RLOCK_OWNER" {
    says 64 '^hint: --owner TOKEN or RLOCK_OWNER' renew k
    RLOCK_OWNER="" run -64 rlock renew k
    for one in release renew; do
        run -64 rlock "$one" --owner "$NO_OWNER"
        run -64 rlock "$one" --owner "$NO_OWNER" a b
        run -64 rlock "$one" --owner "$NO_OWNER" 'a b'
        run -64 rlock "$one" --owner "$NO_OWNER" k -- true
        run -64 rlock "$one" --owner me -u unix:///nowhere k
        RLOCK_OWNER=me run -78 rlock "$one" -u unix:///nowhere k
        prints 0 "*Example*rlock $one*" "$one" --help
    done
}

@test "H1 a release whose answer is lost is asked for again, and counts" {
    start_proxy
    mine=$(rlock acquire k)
    fault on up EVAL drop down
    says 0 '^rlock: release: the store is back after ' release -u "redis://${proxy[proxy]}" \
        --connect-timeout 5s --owner "$mine" k
    run -0 rlock status -q k
    mine=$(rlock acquire k)
    fault pass
    fault on up EVAL cut down 0 close
    run -0 rlock release -u "redis://${proxy[proxy]}" --owner "$mine" k
    run -0 rlock status -q k
}

@test "a renewal whose answer is lost is asked for again" {
    start_proxy
    mine=$(rlock acquire --lease 60s k)
    run -0 rlock renew --owner "$mine" k
    fault on up EVAL cut down 0 close
    run -0 rlock renew -u "redis://${proxy[proxy]}" --owner "$mine" --lease 100s k
    within 90000 100000 "$(lease_left k)"
}

@test "H1 the release of a lock that was taken away ends with 1, though its first answer is lost" {
    start_proxy
    mine=$(rlock acquire k)
    rlock force-release --now --yes k
    fault on up EVAL cut down 0 close
    run -1 --separate-stderr rlock release -u "redis://rlock:pw@${proxy[proxy]}" --owner "$mine" k
    stderr_line '^rlock: release: k: taken away '
}

@test "a server that hangs: exit 69 after the connect timeout" {
    mine=$(rlock acquire k)
    kill -STOP "$(redis_pid)"
    timed 900 14000 run -69 --separate-stderr rlock release --connect-timeout 1s --owner "$mine" k
    kill -CONT "$(redis_pid)"
}

@test "a release that the server refuses was not done, and nothing else is said" {
    as_default_user
    mine=$(rlock acquire k)
    redis acl setuser powerless reset on '>pw' +ping +time +role
    redis acl setuser elsewhere reset on '>pw' '~*' '&*' +@all -select
    for command in "-u unix://powerless:pw@$REDIS_SOCK" "-u unix://elsewhere:pw@$REDIS_SOCK?db=3"; do
        says 77 ': no right to run ' release $command --owner "$mine" k
        [[ $stderr != *"may have been released"* ]]
    done
    redis acl setuser default '>s3cret' resetpass '>s3cret'
    says 77 'it asks for a password$' release --owner "$mine" k
    [[ $stderr != *"may have been released"* ]]
    RLOCK_PASSWORD=wrong says 77 'wrong password, or no such user$' release --owner "$mine" k
    [[ $stderr != *"may have been released"* ]]
    RLOCK_PASSWORD=s3cret run -75 rlock status -q k
    # If every user may release it, a refused password does not matter.
    REDISCLI_AUTH=s3cret redis acl setuser default nopass
    run -77 --separate-stderr rlock release -u "unix://powerless:wrong@$REDIS_SOCK" --owner "$mine" k
    stderr_line 'may have been released anyway$'
    run -0 rlock status -q k
}
