# rlock history: who had it, when, for how long, how it ended.

load helper

@test "history, status and JSON tell each way in which a run may end" {
    local since=$EPOCHSECONDS
    run -0 rlock run --label nightly k -- true
    run -3 rlock run k -- sh -c 'exit 3'
    run -0 rlock run --no-identity k -- true
    run rlock run k -- sh -c 'kill -KILL $$'
    run -124 rlock run --at-most 300ms k -- sleep 100
    hold a k
    run -0 rlock force-release --now --yes k
    poll_until 15 contains "$T/a.err" 'lock lost'
    owner=$(rlock acquire k)
    run -0 rlock release --owner "$owner" k
    run -0 rlock history --json k
    json 'map(.outcome) == ["exit 0", "exit 3", "exit 0", "signal KILL", "timed out", "revoked", null]'
    json 'map([.result, .exit_status, .signal]) == [["success", 0, null], ["failure", 3, null],
          ["success", 0, null], ["failure", null, "KILL"], ["timed_out", null, "TERM"],
          ["revoked", null, null], [null, null, null]]'
    json 'all(.key == "k" and .waited_ms == 0 and .held_ms >= 0 and (.since | test("Z$")) and
          (.fence | type) == "number") and (map(.fence) | sort) == map(.fence)'
    json '.[0] | .label == "nightly" and .command == "true" and .host == "'"$(hostname)"'" and
          .user == "'"$(id -un)"'" and (.pid | type) == "number"'
    json ".[0].since | sub(\"\\\\.[0-9]*Z\"; \"Z\") | fromdate >= $since"
    json '.[2] | [.label, .command, .host, .user, .pid] == [null, null, null, null, null]'
    json '.[4].held_ms >= 300'
    run -0 rlock history --json --failed
    json 'map(.outcome) == ["exit 3", "signal KILL", "timed out", "revoked"]'
    run -0 rlock history k
    [[ ${#lines[@]} == 8 && ${lines[0]} == SINCE*KEY*BY*WAITED*HELD*OUTCOME ]]
    [[ ${lines[5]} == *'(sleep)'*'timed out' ]]
}

@test "where rlock ran no command there is no result, however it ended" {
    run -0 rlock acquire --lease 1s expired
    run -0 rlock acquire --keep $$ revoked
    run -0 rlock force-release --now --yes revoked
    run -0 rlock reserve reserved 5m -m test
    run -0 rlock force-release --yes reserved
    poll_until 15 rlock run -n expired -- true
    run -0 rlock history --json
    json 'map([.key, .outcome, .result]) == [["expired", "expired", null],
          ["revoked", "revoked", null], ["reserved", "revoked", null],
          ["expired", "exit 0", "success"]]'
    run -0 rlock status --json revoked
    json '.[0].last_run | .outcome == "revoked" and .result == null'
}

@test "history has the wait of a run, takes KEYs, globs and --since; [] for none; 64 for misuse" {
    hold a x1
    queued x1 bg b rlock run x1 y2 -- true
    kill "${pid[a]}"
    finish b 15
    run -0 rlock history --json 'x*'
    json 'map(.key) == ["x1", "x1"] and .[1].waited_ms > 0'
    run -0 rlock history --json x1 y2
    json 'map(.key) == ["x1", "x1", "y2"]'
    run -0 rlock history --json --since 1d 'y*'
    json 'length == 1'
    run -0 rlock history --json --since 1ms nothing
    json '. == []'
    prints 0 '' history nothing
    run -64 rlock history --since x
    run -64 rlock history --since 0
    run -64 rlock history 'a b'
    run -64 rlock history k -- true
}

@test "--plot draws a row a run, with its wait, in the window, with UTF-8 and without; misuse: 64" {
    hold a k
    queued k bg b rlock run k -- sh -c 'exit 3'
    kill "${pid[a]}"
    finish b 15
    LC_ALL=C.UTF-8 run -0 rlock history --plot k
    [[ ${#lines[@]} == 4 && ${lines[0]} == 'last runs (░ waited, █ held) of k' ]]
    [[ ${lines[1]} == BY*HELD*WAITED*OUTCOME && ${lines[2]} == *█*'signal TERM' ]]
    [[ ${lines[3]} == *[█▌▐]*'exit 3' ]]
    LC_ALL=C run -0 rlock history --plot k
    [[ ${lines[2]} == *'#'* && ${lines[3]} == *'-'*'#'*'exit 3' && $output != *[░█▌▐]* ]]
    LC_ALL=C run -0 rlock history --plot --failed k
    [[ ${#lines[@]} == 4 ]]
    LC_ALL=C.UTF-8 "$TESTS/terminal.py" sh -c "stty cols 40; rlock history --color never --plot k" \
        3>&- <<'END'
expect BY +[0-9:]+ +[0-9:]+  HELD {4,}OUTCOME\r\n
expect exit 3\r\n
status 0
END
    run -0 --separate-stderr rlock history --plot nothing
    [[ $output == "" && $stderr == *'no runs' ]]
    run -64 rlock history --plot
    run -64 rlock history --plot k k2
    run -64 rlock history --plot 'k*'
    run -64 rlock history --plot --json k
}

@test "status: the last run of a free lock; free locks with --all" {
    run -1 rlock run --label nightly k -- false
    run -0 rlock status k
    [[ $output == *'k: free, 0 waiting'*'last run by '*'(false)'*'label       nightly'*'outcome     exit 1' ]]
    run -0 rlock status --json k
    json '.[0].last_run | .outcome == "exit 1" and .label == "nightly" and .held_ms >= 0 and .key == null'
    prints 0 '' status
    run -0 rlock status --all
    [[ ${#lines[@]} == 2 && ${lines[1]} == k*free* ]]
    status_json never '.[0].last_run == null'
    run -64 rlock status --all -u zookeeper://h
}

@test "H92 rlock was killed: history says so; with its agent, that its lease expired" {
    hold a k
    kill -KILL "${pid[a]}"
    finish a
    poll_until 15 is_free k
    hold b k --lease 5s
    kill_both b
    poll_until 15 rlock run -n k -- true
    run -0 rlock history --json k
    json 'map(.outcome) == ["rlock was killed", "expired", "exit 0"]'
    prints 0 '*rlock was killed*' history --failed k
    run -0 rlock status --json --all k
    run -0 rlock metrics k
    [[ $output == *'rlock_last_end_timestamp_seconds{key="k",outcome="failure"}'* ]]
}

@test "H92 rlock is killed before its agent knows of the command: history says so" {
    need_strace
    # A supervisor that is held up between the start of its command and its word about it.
    bg a strace -qq -o "$T/strace" -e inject=pidfd_open:delay_enter=3s rlock run k -- \
        sh -c "echo \$PPID >'$T/up'; exec sleep 1000"
    poll_until 10 test -s "$T/up"
    kill -KILL "$(<"$T/up")"
    poll_until 15 is_free k
    run -0 rlock history --json k
    json 'map(.outcome) == ["rlock was killed"]'
}

@test "--unless-done: what has succeeded is not run again, what failed is; also after a wait" {
    run -1 rlock run --unless-done 1h k -- false
    run -0 rlock run --unless-done 1h k -- true
    run -75 --separate-stderr rlock run --unless-done 1h k -- touch "$T/again"
    stderr_line '^rlock: k: not acquired: a run by .*@.* \(true\) that began [0-9.]+m?s ago has succeeded$'
    quiet 0 run -q -E 0 --unless-done 1h k -- touch "$T/again"
    run -0 rlock run --unless-done 1h k l -- true
    run -75 rlock run --unless-done 1h k l -- touch "$T/again"
    # Two wait; the holder succeeds.
    bg a rlock run w -- await "$T/go"
    poll_until 15 held w
    queued w bg b rlock run --unless-done 1h w -- touch "$T/again"
    queued w bg c rlock run --unless-done 1h w -- touch "$T/again"
    : >"$T/go"
    finish a
    ends_with b 75
    finish c
    [[ $status == 75 && ! -e $T/again ]]
    run -64 rlock run --unless-done 8d k -- true
    run -64 rlock run --unless-done 0 k -- true
    run -64 rlock run --unless-done x k -- true
    run -64 rlock run -u cluster://h --unless-done 1h k l -- true
    run -64 rlock run -u zookeeper://h --unless-done 1h k -- true
}
