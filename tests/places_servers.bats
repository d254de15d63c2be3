# Networks and servers between which rlock runs, and that are there all the time. run_rlock_under
# COMMAND: each rlock that follows is started by that. exclusion, signals, keeps_promises: one
# command at a time, whichever process is killed or stopped; signals reach it; all of that.
# replacement: an agent that is killed is replaced, and the lock is kept. nothing_left: no process
# of rlock or of a command, and no lock.

load helper
load places
load crowds

# ---------------------------------------------------------------- networks

@test "place: behind a proxy that is slow, and hands on byte by byte" {
    start_proxy
    fault delay up 30
    fault trickle down 1
    RLOCK_URL=redis://rlock:pw@${proxy[proxy]} LEASE=15s
    run_rlock_under env
    exclusion
    signals
    poll_until 20 nothing_left
}

@test "place: behind a proxy that delivers each request twice, delayed and in another order" {
    start_proxy
    fault delay up 20 # ms
    fault double 8000 # ms: each request comes again, up to 8 s later
    RLOCK_URL=redis://rlock:pw@${proxy[proxy]}
    run_rlock_under env
    keeps_promises
}

# The proxy does so to those that hold and wait. A command whose first request is answered so ends.
@test "place: behind a proxy that answers each third request with an error, though it is done" {
    bg_prints lying python3 "$TESTS/lying_proxy.py" "$REDIS_SOCK" '[A-Z]+' 1000000 3 "$T/lies"
    RLOCK_URL=redis://rlock:pw@127.0.0.1:$(head -n 1 "$T/lying.out")
    run_rlock_under env
    MEANWHILE="touch $T/lies" exclusion
    rm "$T/lies"
    [[ $(grep -c lost "$T/lying.out") -gt 5 ]]
    replacement
    signals
    poll_until 20 nothing_left
}

# ---------------------------------------------------------------- servers

# All the others that the server takes wait for a lock, and more would.
fill_with_waiters() {
    hold other other
    redis config set maxclients $(($(redis client list | wc -l) + 4)) >/dev/null
    for i in {1..12}; do
        bg "w$i" rlock run -w 5m other -- true
    done
    poll_until 15 eval 'grep -q "too many clients" "$T"/w*.err'
}

@test "place: a server whose connections are all in use by those that wait" {
    run_rlock_under env
    MEANWHILE=fill_with_waiters exclusion
    terminate other
    all_end 0 60 w{1..12}
    signals
    redis config set maxclients 10000 >/dev/null
    poll_until 20 nothing_left
}
