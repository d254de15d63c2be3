# rlock force-release asks the holder first, and run --replace, in a Cluster.

load helper
load cluster
load decisions

setup_file() { cluster_file; }
teardown_file() {
    cluster_stop
    redis_stop
}

setup() { cluster_setup; }
teardown() { cluster_teardown; }

@test "H45 a Cluster: the holder is asked, of one key and of several at different nodes" {
    local key=${at[0]} other=${at[1]}
    asks_holder "$key"
    bg b rlock run --lease 9s "$key" "$other" -- sh -c ": >'$T/b.up'; exec sleep 1000"
    poll_until 10 test -e "$T/b.up"
    run -0 --separate-stderr rlock force-release --yes "$other"
    stderr_line "^rlock: $other was given back by "
    finish b
    [[ $status == 79 ]]
    poll_until 5 is_free "$key"
}

@test "a Cluster: --replace asks the holder, and has the lock after it" {
    local key=${at[0]}
    hold a "$key" --lease 9s
    run -0 rlock run --replace "$key" -- true
    finish a
    [[ $status == 79 ]]
    contains "$T/a.err" ': --replace; stopping'
}
