# A server that is there, but cannot save, is full, has too few replicas or is one itself.
# two_holders: "short" has a lease of 2 s, "long" one of 18 s. trouble_is_felt: short has lost its
# lock by now; long_goes_on: long is renewed, and keeps it.

load helper
load crowds

setup_file() { start_file --enable-protected-configs yes; }

@test "H15 a server that cannot save: renewals continue afterwards" {
    mkdir "$T/data"
    redis config set dir "$T/data"
    two_holders
    rmdir "$T/data"
    redis config set save "3600 1"
    redis bgsave >/dev/null || true
    poll_until 10 eval '[[ $(redis set x y 2>&1) == *MISCONF* ]]'
    refused 69 run --connect-timeout 3s k -- touch "$T/run"
    stderr_line "^rlock: k: unix://$REDIS_SOCK: it cannot save its data to disk, and takes no writes, for [0-9]+s\$"
    stderr_line '^hint: its log tells why'
    [[ $stderr != *MISCONF* ]]
    says 69 'the server said: MISCONF' run -v --connect-timeout 3s k -- touch "$T/run"
    trouble_is_felt
    redis config set save ""
    redis config set stop-writes-on-bgsave-error no
    long_goes_on
}

@test "H15 a release that the server refuses: the command's status and a warning" {
    mkdir "$T/data"
    redis config set dir "$T/data"
    redis config set save "3600 1"
    stay a k --lease 12s
    rmdir "$T/data"
    redis bgsave >/dev/null || true
    poll_until 10 eval '[[ $(redis set x y 2>&1) == *MISCONF* ]]'
    ends_well a
    contains "$T/a.err" "rlock: "
}

@test "H17 out of memory: a newcomer is told so in plain words, and in the server's own with -v" {
    redis config set maxmemory 1
    out_of_memory() { # WHAT COMMAND...
        run -69 --separate-stderr rlock "${@:2}"
        [[ ${stderr_lines[0]} \
            == "rlock: $1: unix://$REDIS_SOCK: out of memory: it has used up its maxmemory" ]]
        [[ ${stderr_lines[1]} == "hint: raise maxmemory"* && ${#stderr_lines[@]} == 2 ]]
    }
    out_of_memory k run k -- touch "$T/run"
    out_of_memory k acquire k
    out_of_memory latch latch set l 1
    run -69 --separate-stderr rlock run -v k -- touch "$T/run"
    stderr_line '^rlock: [0-9:.]+ k: the server said: OOM command not allowed'
    stderr_line "^rlock: k: unix://$REDIS_SOCK: out of memory: it has used up its maxmemory\$"
    [[ ! -e $T/run ]]
}

@test "H18 too few replicas for writes: retried; a short lease ends its command" {
    two_holders
    redis config set min-replicas-to-write 1
    refused 69 run --connect-timeout 3s k -- touch "$T/run"
    stderr_line "^rlock: k: unix://$REDIS_SOCK: it has too few replicas to take writes, for [0-9]+s\$"
    trouble_is_felt
    redis config set min-replicas-to-write 0
    long_goes_on
}

@test "H49 a server is a replica for a moment: a command ends if its lease is short, not if long" {
    two_holders
    redis replicaof 127.0.0.1 1
    trouble_is_felt
    redis replicaof no one
    long_goes_on
}

# fill NUMBER: so many clients may be there; as many are, besides the connection "cli" that is kept
# to change that.
fill() {
    redis config set maxclients "$1" >/dev/null
    crowd "$REDIS_SOCK"
}

@test "H9 a full server is waited for as a queue is: as long as -w says, not with -n" {
    fill 20
    refused 69 run -n --server-wait 1m k -- touch "$T/ran"
    stderr_line "^rlock: k: unix://$REDIS_SOCK: too many clients"
    stderr_line '^hint: maxclients'
    refused 69 run -w 3s --server-wait 1s k -- touch "$T/ran"
    stderr_line "^rlock: k: unix://$REDIS_SOCK: too many clients.*, for [2-9]"
    bg a rlock run --server-wait 0 k -- true
    bg_says b 'trying again' rlock run --server-wait 1s --connect-timeout 1s k -- true
    sleep 4 # longer than it waits for a server that is away
    alive "${pid[a]}"
    alive "${pid[b]}"
    crowd_leaves
    ends_with a 0
    ends_with b 0
    contains "$T/b.err" 'the store is back'
    redis config set maxclients 10000
}

# The clients' connections are there all the time. The crowd is the first to ask for each place
# that becomes free.
@test "H9 a full server stands still: who had a place there keeps it" {
    stay a k --lease 15s
    queued k bg w rlock run --server-wait 1m k -- true
    fill 20
    kill -STOP "$(redis_pid)"
    poll_until 15 contains "$T/a.err" 'trying again'
    poll_until 15 contains "$T/w.err" 'trying again'
    kill -CONT "$(redis_pid)"
    poll_until 10 contains "$T/a.err" 'the store is back'
    poll_until 10 contains "$T/w.err" 'the store is back'
    crowd_leaves
    renewed k
    ends_well a
    ends_with w 0
    redis config set maxclients 10000
}

@test "H9 24 jobs of one lock at a server that takes 20 clients: all of them run" {
    redis config set maxclients 20
    for i in {1..24}; do
        bg "j$i" rlock run k -- sh -c "echo x >>'$LOG'"
    done
    all_end 0 60 j{1..24}
    [[ $(wc -l <"$LOG") == 24 ]]
    redis config set maxclients 10000
}
