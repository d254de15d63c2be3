# No two commands overlap, whatever the network does: H5, H95. contend ROW: aROW works as a tree of
# three processes, and bROW waits; b_begins_after_a ROW: a and its tree have ended before b begins.

load helper

# networked ROW LEASE FLAG: contends through the proxy ROW.
networked() {
    start_proxy "$1"
    contend "$1" "$2" -u "redis://${proxy[$1]}" -- "$3"
}

# a_loses_its_lock_before_b ROW
a_loses_its_lock_before_b() {
    ends_with "a$1" 79
    b_begins_after_a "$1"
}

# All at the same time, since each of them waits for the end of a lease.
@test "H5 H95 a broken network: the tree is dead before another begins, TERM ignored or not" {
    local -A rows=([dark]='ignore blackhole' [requests_vanish]='obey drop up'
        [replies_vanish]='obey drop down' [refused]='ignore refuse'
        [slow_as_the_lease]='ignore delay up 3000/delay down 3000')
    for row in "${!rows[@]}"; do
        read -r flag faults <<<"${rows[$row]}"
        networked "$row" 6s "$flag"
        for fault in "${faults%%/*}" "${faults##*/}"; do
            fault_of "$row" $fault
        done
    done
    for row in "${!rows[@]}"; do
        echo "--- $row"
        a_loses_its_lock_before_b "$row"
        contains "$T/a$row.err" 'rlock: '
    done
}

@test "an answer that is late does not prolong a lease: it counts from before the request" {
    start_proxy
    fault delay down 1500
    at_work a k forever -u "redis://${proxy[proxy]}" --lease 9s --no-renew -- tree ignore
    work b k 0.3 --lease 10s
    ends_with a 124
    ends_with b 0
    no_overlap
}
