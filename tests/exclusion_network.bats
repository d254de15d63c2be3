# No two commands overlap, whatever the network does: H5, H95.

load helper

# contend LEASE [FLAG...]: a works through a proxy, b waits beside it.
contend() {
    start_proxy
    at_work a k 100 -u "redis://${proxy[proxy]}" --lease "$1" -- tree "${@:2}"
    poll_until 10 eval '[[ $(cut -d" " -f2 "$LOG" | sort -u | wc -l) == 3 ]]'
    work b k 0.3 --lease 10s
    poll_until 10 has_waiters k 1
    tree=$(cut -d' ' -f2 "$LOG" | sort -u)
}

a_lost_b_alone() {
    local one
    ends_with a 79
    ends_with b 0
    no_overlap
    for one in $tree; do
        gone "$one"
    done
}

@test "H5 H95 a black hole: the tree is dead before the lease ends, TERM ignored or not" {
    contend 6s ignore
    fault blackhole
    a_lost_b_alone
    contains "$T/a.err" "rlock: "
}

@test "H5 replies vanish: renewals without an answer do not count" {
    contend 6s
    fault drop down
    ends_with a 79
    finish b 20
    no_overlap
}

@test "H5 requests vanish: the command is stopped before anyone else begins" {
    contend 6s
    fault drop up
    a_lost_b_alone
}

@test "connections are refused from now on: the command is stopped before anyone else begins" {
    contend 6s ignore
    fault refuse
    a_lost_b_alone
}

@test "connections are reset again and again: the lock is kept; refused: stopped in time" {
    contend 9s
    while alive "${pid[a]}" && ((${n:=0} < 8)); do
        fault rst
        n=$((n + 1))
        sleep 0.5 # the period of the fault
    done
    alive "${pid[a]}"
    fault refuse
    a_lost_b_alone
}

@test "a network as slow as the lease: the command is stopped before anyone else begins" {
    contend 6s ignore
    fault delay up 3000
    fault delay down 3000
    a_lost_b_alone
}

@test "an answer that is late does not prolong a lease: it counts from before the request" {
    start_proxy
    fault delay down 1500
    at_work a k 100 -u "redis://${proxy[proxy]}" --lease 6s --no-renew -- tree ignore
    work b k 0.3 --lease 10s
    ends_with a 124
    ends_with b 0
    no_overlap
}

@test "the network comes back in time: nothing was lost" {
    start_proxy
    stay a k -u "redis://${proxy[proxy]}" --lease 18s
    fault blackhole
    poll_until 10 contains "$T/a.err" "no answer in time" # to its renewal
    run -75 rlock run -n k -- true
    fault pass
    renewed k
    ends_well a
}
