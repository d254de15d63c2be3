# No two commands overlap when the server is stopped or restarted with its data: H16, H43. contend:
# a works as a tree of three processes, and b waits; b_begins_after_a: a and its tree have ended
# before b begins.

load helper

setup_file() { start_file --appendonly yes --appendfsync always; }

@test "the server is stopped and continued: the command is stopped before another one begins" {
    contend '' 6s -- ignore
    kill -STOP "$(redis_pid)"
    ends_with a 79
    kill -CONT "$(redis_pid)"
    b_begins_after_a
}

@test "the server stops just while the command ends: the command's status, and a warning" {
    bg a rlock run --lease 6s k -- sh -c "kill -STOP $(redis_pid); exit 6"
    ends_with a 6
    contains "$T/a.err" "rlock: "
    kill -CONT "$(redis_pid)"
    run -0 rlock run -w 60s k -- true
}

@test "H43 the server is killed and comes back with its data: no client notices" {
    at_work a k forever --lease 15s
    queued k work b k 0.3
    redis_restart
    run -75 rlock run -n k -- true
    renewed k
    handed_over 20
}

@test "H43 the server comes back with its data after the lease: the next one has the lock" {
    contend '' 6s -- ignore
    redis_stop
    ends_with a 79
    redis_start
    b_begins_after_a
}

@test "H10 H65 thirty waiters come in their order, also over a restart with the data" {
    hold a k --lease 60s
    for i in {1..30}; do
        queue "w$i" k
    done
    redis_restart
    kill "${pid[a]}"
    in_turn 40 w{1..30}
}
