# --latest: of those that wait for a group, only the last one.

load helper

was_sent_away() {
    [[ $(redis hexists 'rlock:{k}' g) == 1 ]]
}

@test "H62 --latest: of those that wait the last one runs; the others say who came" {
    hold a k
    queue b k --latest
    bg c rlock run --latest -E 3 k -- sh -c "echo c >>'$LOG'"
    ends_with b 75
    grep -q '^rlock: k: not acquired: superseded by .* pid .* (sh)$' "$T/b.err"
    bg d rlock run --latest k -- sh -c "echo d >>'$LOG'"
    ends_with c 3
    kill "${pid[a]}"
    finish d
    [[ $status == 0 && $(<"$LOG") == d ]]
}

@test "--latest: one that is superseded says so with -E 0, too, and not with -q" {
    hold a k
    queue b k --latest -E 0
    bg c rlock run --latest -q -E 0 k -- true
    ends_with b 0
    bg d rlock run --latest k -- true
    tail -n 1 "$T/b.err" | grep '^rlock: k: not acquired: superseded by .* pid .* (true)$'
    finish c
    [[ $status == 0 && ! -s $T/c.err ]]
    kill "${pid[a]}"
    ends_with d 0
}

@test "--latest: one that was stopped while another came ends when it continues" {
    hold a k
    queue b k --latest
    kill -STOP "${pid[b]}" "$(agent_of "${pid[b]}")"
    bg c rlock run --latest k -- sh -c "echo c >>'$LOG'"
    poll_until 15 was_sent_away
    kill "${pid[a]}"
    ends_with c 0 20
    kill -CONT "$(agent_of "${pid[b]}")" "${pid[b]}"
    finish b 20
    [[ $status == 75 && $(<"$LOG") == c ]]
}

@test "--latest: just --group, and a store that has none, are refused before anything is opened" {
    run -64 rlock run --group g k -- true
    [[ $output == *'--group without --latest'* ]]
    run -64 rlock run --latest --group 'a b' k -- true
    run -64 rlock run -u zookeeper://127.0.0.1:1 --latest k -- true
    [[ $output == *'zookeeper:// has no --latest'* ]]
    run -64 rlock acquire -u unix:///a -u unix:///b -u unix:///c --latest k
    [[ $output == *'has no --latest'* ]]
}
