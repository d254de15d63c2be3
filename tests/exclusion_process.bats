# No two commands overlap, whatever process of rlock is killed or stopped: H92 to H95.
#
# Each command is a tree of three generations, the last in a session of its own, with TERM ignored;
# all of them write to one log, and another rlock waits for the lock.

load helper

# contend LEASE [FLAG...]: a works, b waits.
contend() {
    at_work a k 100 --lease "$1" -- tree "${@:2}"
    poll_until 10 eval '[[ $(cut -d" " -f2 "$LOG" | sort -u | wc -l) == 3 ]]'
    work b k 0.3 --lease 10s
    poll_until 10 has_waiters k 1
    a=${pid[a]}
    agent=$(agent_of "$a")
    command=$(command_of "$a")
    tree=$(cut -d' ' -f2 "$LOG" | sort -u)
    [[ -n $agent && -n $command ]]
}

b_alone() {
    local one
    ends_with b 0 20
    no_overlap
    for one in $tree; do
        gone "$one"
    done
}

@test "H92 kill -9 of rlock: its tree is gone before anyone else begins" {
    contend 6s ignore
    kill -KILL "$a"
    ends_with a 137
    poll_until 2 gone "$command"
    b_alone
}

@test "H92 kill -9 of rlock: a tree that obeys TERM is gone before anyone else begins" {
    contend 6s
    kill -KILL "$a"
    b_alone
}

@test "H93 SIGSTOP of rlock: its agent ends the command in time" {
    contend 6s ignore
    kill -STOP "$a"
    b_alone
    kill -CONT "$a"
    ends_with a 79
}

@test "H93 SIGSTOP of rlock for a moment is forgiven" {
    bg a rlock run --lease 12s --kill-after 0 k -- sh -c ": >'$T/up'; sleep 2; exit 9"
    poll_until 10 test -e "$T/up"
    kill -STOP "${pid[a]}"
    sleep 0.5 # the moment
    kill -CONT "${pid[a]}"
    ends_with a 9
}

@test "H75 SIGSTOP of the agent: rlock ends the command in time" {
    contend 6s ignore
    kill -STOP "$agent"
    b_alone
    ends_with a 79
}

@test "H75 kill -9 of the agent, then of rlock: the tree is gone before anyone else begins" {
    contend 9s ignore
    kill_agent a
    renewed k
    kill -KILL "$a"
    ends_with a 137
    b_alone
}

@test "H94 both killed within a moment: the command dies with them" {
    at_work a k 100 --lease 9s -- ignore
    work b k 0.3
    poll_until 10 has_waiters k 1
    command=$(command_of "${pid[a]}")
    kill_both a
    poll_until 2 gone "$command"
    finish b
    no_overlap
}

@test "H94 both stopped, then both killed: the command dies with them" {
    at_work a k 100 --lease 9s -- ignore
    command=$(command_of "${pid[a]}")
    agent=$(agent_of "${pid[a]}")
    kill -STOP "${pid[a]}" "$agent"
    kill -KILL "$agent" "${pid[a]}"
    poll_until 2 gone "$command"
}
