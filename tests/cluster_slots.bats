# A Redis Cluster whose slots move to other masters, under locks that are held or waited for, and
# one whose answers are lost. ${at[N]} is a KEY at the Nth of three masters; a node is called by its
# port. ends NAME: told to, with the lock that it had. each_flight SERVERS COMMAND: in one run after
# the other, another answer of the SERVERS is lost; each run ends well. renews_lock KEY: its holder
# has renewed it since. another_than KEY: a master that does not have it.

load helper
load cluster
load flights

@test "H52 H58 a slot moves: the lock in it is kept, and the waiter gets its turn" {
    local key=${at[0]} i
    at_work a "$key" 100 --lease 12s
    queued "$key" work w "$key" 0.2 --lease 12s
    for i in 1 2 3; do
        move_slot "$key" "$(another_than "$key")"
        run -75 rlock run -n "$key" -- true
        renews_lock "$key"
    done
    ends a
    [[ ! -s $T/a.err ]]
    ends_with w 0
    no_overlap
    is_free "$key"
}

# have_traced_more NUMBER: more than so many have had their turn.
have_traced_more() {
    (($(traced | wc -l) > $1))
}

@test "H52 a slot moves all the time: no two contenders hold its lock at once" {
    local key=${at[1]} i
    for i in 1 2 3 4; do
        bg "p$i" sh -c "i=0; until [ -e '$T/enough' ]; do i=\$((i + 1))
            \"\$0\" run --lease 12s '$key' -- \
                '$RLOCK_TEST_TOOLS/worker' '$LOG' p$i-\$i 0.01 || exit; done" "$RLOCK"
    done
    for i in {1..6}; do
        move_slot "$key" "$(another_than "$key")"
        poll_until 20 have_traced_more "$(traced | wc -l)"
    done
    : >"$T/enough"
    all_end 0 40 p{1..4}
    no_overlap
    is_free "$key"
}

@test "H53 a slot is about to move: locks on either side are found, held and waited for" {
    local here=${at[0]} target source slot
    slot=$(slot_of "$here")
    source=$(master_of "$here")
    target=$(another_than "$here")
    hold a "$here"
    queue w "$here"
    open_slot "$here" "$target"
    # The lock is at the source, and stays there.
    run -75 rlock run -n "$here" -- true
    [[ $(rlock status --json "$here" | jq '.[0].waiters | length') == 1 ]]
    kill "${pid[a]}"
    ends_with w 0
    [[ $(cli "$source" cluster countkeysinslot "$slot") == 1 ]]

    # A lock that is nowhere yet begins at the target, whatever that knows of scripts.
    cli "$source" del "rlock:{$here}"
    cli "$source" script flush
    cli "$target" script flush
    hold b "$here" --lease 12s
    [[ $(cli "$source" cluster countkeysinslot "$slot") == 0 ]]
    queue v "$here" --lease 12s
    run -75 rlock run -n "$here" -- true
    cli "$target" script flush
    renews_lock "$here"
    status_json "$here" '.[0] | (.holders | length) == 1 and (.waiters | length) == 1'
    [[ $(rlock status --json | jq -c 'map(.key)') == "[\"$here\"]" ]]
    kill "${pid[b]}"
    finish v
    [[ $status == 0 && $(<"$LOG") == $'w\nv' ]]
    poll_until 5 is_free "$here"
    close_slot "$here" "$target"
    run -0 rlock run "$here" -- true
}

@test "H53 a lock whose slot is about to move, or half moved, is in the list once" {
    local key=${at[0]} source target
    source=$(master_of "$key")
    target=$(another_than "$key")
    hold a "$key"
    hold b "${at[1]}"
    open_slot "$key" "$target"
    [[ $(rlock status --json | jq -c 'map(.key)') == "[\"$key\",\"${at[1]}\"]" ]]
    move_keys "$key" "$source" "$target"
    [[ $(rlock status --json | jq -c 'map(.key)') == "[\"$key\",\"${at[1]}\"]" ]]
    run -75 rlock status -q "$key"
    run -0 rlock force-release --now --yes "$key"
    close_slot "$key" "$target"
}

@test "H155 --mirror while the slot moves: the other program's key is not taken for free" {
    local key=${at[0]} source target
    source=$(master_of "$key")
    target=$(another_than "$key")
    cli "$source" set "$key" token px 600000 >/dev/null
    open_slot "$key" "$target"
    # The lock is nowhere yet, and its mirror at the source: the target would see neither.
    refused 69 run -n --server-wait 0 --mirror string "$key" -- touch "$T/ran"
    stderr_line "the Cluster is moving the key's slot"
    bg w rlock run --server-wait 1m --mirror string "$key" -- touch "$T/ran"
    poll_until 10 contains "$T/w.err" "the Cluster is moving the key's slot"
    move_keys "$key" "$source" "$target"
    close_slot "$key" "$target"
    poll_until 20 contains "$T/w.err" "held by a foreign lock $key"
    [[ ! -e $T/ran ]]
    cli "$target" del "$key" >/dev/null
    ends_with w 0
    [[ -e $T/ran && $(cli "$target" exists "$key") == 0 ]]
}

@test "H155 a lock and its mirror are on two nodes for a moment: neither is lost" {
    local key=${at[0]} source target
    source=$(master_of "$key")
    target=$(another_than "$key")
    hold a "$key" --lease 15s --mirror string
    queue b "$key" --mirror string
    open_slot "$key" "$target"
    cli "$source" migrate 127.0.0.1 "$target" "rlock:{$key}" 0 2000 >/dev/null
    refused 69 run -n --server-wait 0 --mirror string "$key" -- touch "$T/ran"
    move_keys "$key" "$source" "$target"
    close_slot "$key" "$target"
    renews_lock "$key"
    # A force-release, which does not know of the mirror, releases it as well.
    run -0 rlock force-release --now --yes "$key"
    ends_with b 0
    [[ $(cli "$target" exists "$key") == 0 ]]
    ends_with a 79
}

@test "several keys: one moves to the master of another, and all of them are renewed" {
    local a=${at[0]} b=${at[1]} c=${at[2]}
    at_work w "$a" 100 "$b" "$c" --lease 12s
    move_slot "$a" "$(master_of "$c")"
    renews_lock "$b"
    move_slot "$b" "$(master_of "$c")"
    renews_lock "$a"
    renews_lock "$b"
    ends w
    [[ ! -s $T/w.err ]]
    run -0 rlock status -q "$a" "$b" "$c"
}

# by_seeds PORT...: prints the address of the Cluster, by these nodes.
by_seeds() {
    local seeds
    seeds=$(printf ',127.0.0.1:%s' "$@")
    echo "cluster://${seeds:1}"
}

@test "H141 an answer of a Cluster that is lost, whichever it is: it runs once, the lock is free" {
    each_flight "$(tr ' ' , <<<"$CLUSTER_NODES")" by_seeds
}
