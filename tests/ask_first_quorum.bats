# rlock force-release asks the holder first, in a quorum.

load helper
load quorums
load decisions

setup_file() { quorum_file 3; }

@test "H45 a quorum: the holder is asked, gives the lock back everywhere, and says by whom" {
    asks_holder k
    poll_until 5 nothing_at k 1 2 3
    run -0 rlock run -n k -- true
}

@test "H45 a quorum: a holder that does not hear of it loses the lock when its lease ends" {
    hold a k --lease 4s
    kill_both a
    run -0 rlock force-release --yes k
    run -0 rlock run -w 10s k -- true
}

@test "a quorum has no --replace" {
    run -64 --separate-stderr rlock run --replace k -- true
    stderr_line 'has no --replace'
}
