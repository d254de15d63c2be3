# rlock force-release asks the holder first, and run --replace, in a Cluster.

load helper
load cluster
load decisions

@test "H45 a Cluster: the holder is asked, of one key and of several at different nodes" {
    local key=${at[0]} other=${at[1]}
    asks_holder "$key"
    bg b rlock run --lease 9s "$key" "$other" -- sh -c ": >'$T/b.up'; exec sleep 1000"
    poll_until 10 test -e "$T/b.up"
    run -0 --separate-stderr rlock force-release --yes "$other"
    stderr_line "^rlock: $other was released by "
    ends_with b 79
    poll_until 5 is_free "$key"
}

# Each KEY is renewed by itself; the renewal of one does not end the listening of another.
@test "H45 a Cluster: the holder of several keys at one node hears of each of them" {
    local key node keys
    node=$(masters | cut -d ' ' -f 1)
    keys=("$(key_at "$node" a)" "$(key_at "$node" b)" "${at[1]}")
    for key in "${keys[@]}"; do
        bg b rlock run --lease 1h "${keys[@]}" -- sh -c ": >'$T/b.up'; exec sleep 1000"
        poll_until 10 test -e "$T/b.up"
        poll_until 10 listens_to "${keys[@]}"
        run -0 --separate-stderr rlock force-release --yes "$key"
        stderr_line "^rlock: $key was released by "
        ends_with b 79
        rm "$T/b.up"
    done
}

# listens_to KEY...: someone listens for who asks for them, at some node.
listens_to() {
    local key node found
    for key; do
        found=
        for node in $(masters); do
            found+=$(cli "$node" pubsub channels "rlock:{$key}:*")
        done
        [[ $found ]] || return
    done
}

@test "a Cluster: --replace asks the holder, and has the lock after it" {
    local key=${at[0]}
    hold a "$key" --lease 9s
    run -0 rlock run --replace "$key" -- true
    ends_with a 79
    contains "$T/a.err" ': --replace; stopping'
}
