# A server that is there, but cannot save, is full, has too few replicas or is one itself.

load helper

setup_file() { start_file --enable-protected-configs yes; }

@test "H15 a server that cannot save: renewals go on afterwards" {
    mkdir "$T/data"
    redis config set dir "$T/data"
    two_holders
    rmdir "$T/data"
    redis config set save "3600 1"
    redis bgsave >/dev/null || true
    poll_until 10 eval '[[ $(redis set x y 2>&1) == *MISCONF* ]]'
    run -69 --separate-stderr rlock run --connect-timeout 500ms k -- touch "$T/run"
    stderr_line MISCONF
    [[ ! -e $T/run ]]
    sleep 2.7
    redis config set save ""
    redis config set stop-writes-on-bgsave-error no
    long_survived_short_lost
}

@test "H15 a release that the server refuses: the command's status and a warning" {
    mkdir "$T/data"
    redis config set dir "$T/data"
    redis config set save "3600 1"
    hold other other
    bg a rlock run --lease 3s k -- sh -c ": >'$T/up'; until [ -e '$T/go' ]; do sleep 0.05; done; exit 4"
    poll_until 10 test -e "$T/up"
    rmdir "$T/data"
    redis bgsave >/dev/null || true
    poll_until 10 eval '[[ $(redis set x y 2>&1) == *MISCONF* ]]'
    touch "$T/go"
    finish a 10
    [[ $status == 4 ]]
    contains "$T/a.err" "rlock: "
}

@test "H17 a server out of memory: renew, queue, release, force-release all work" {
    bg a rlock run --lease 2s k -- sh -c ": >'$T/up'; sleep 4; exit 9"
    poll_until 10 test -e "$T/up"
    hold b other
    queue w k
    redis config set maxmemory 1
    run redis set x y
    [[ $output == *OOM* ]]
    finish a
    [[ $status == 9 && ! -s $T/a.err ]]
    finish w
    [[ $status == 0 ]]
    run -0 rlock force-release --yes other
    run -0 rlock status -q k other
}

@test "H18 too few replicas for writes: retried; a short lease ends its command" {
    two_holders
    redis config set min-replicas-to-write 1
    run -69 --separate-stderr rlock run --connect-timeout 500ms k -- touch "$T/run"
    stderr_line 'NOREPLICAS|replicas'
    [[ ! -e $T/run ]]
    sleep 2.7
    redis config set min-replicas-to-write 0
    long_survived_short_lost
}

@test "H49 a replica: refused at the start, and it says what it is" {
    redis replicaof 127.0.0.1 1
    run -69 --separate-stderr rlock run k -- touch "$T/run"
    stderr_line '[Rr]eplica|[Rr]ead.?only'
    [[ ! -e $T/run ]]
}

@test "H49 a server that becomes a replica for a moment" {
    two_holders
    redis replicaof 127.0.0.1 1
    sleep 3.3
    redis replicaof no one
    long_survived_short_lost
}
