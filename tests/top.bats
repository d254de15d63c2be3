# rlock top: the rows, their order, the filter, one lock in full, taking away, outages, the window.
# "top" plays a dialogue with it; "browse" does, and leaves it at the end.

load helper

setup_file() {
    [[ -x ${RLOCK%/*}/rlock-top ]] || skip "no rlock-top: it is built where ncurses is"
    start_file
}

# top [OPTION...]: on a terminal; the dialogue comes from standard input.
top() {
    TERM=screen on_terminal "$RLOCK" top --color never "$@"
}

# browse: as top; at the end of the dialogue it is left.
browse() {
    top < <(cat && printf '%s\n' 'send q' 'status 0')
}

@test "locks with waiters come first; a lock in full, and back" {
    hold a alpha
    hold b beta --label "some label"
    queue w beta
    top <<'END'
expect rlock top  [0-9:]{8}  2 locks, 1 waiting
expect KEY  (.|\n)*beta (.|\n)*alpha
expect Enter details
send \r
expect beta: exclusive, 1 waiting(.|\n)*some label(.|\n)*owner(.|\n)*waiter 1
absent last runs
send q
expect KEY  (.|\n)*alpha
send q
expect \x1b\[\?1049l
status 0
END
}

@test "the details of a lock wrap, and show its last runs, also when it becomes free" {
    rlock run -q k -- true
    run -3 rlock run -q k -- sh -c 'exit 3'
    owner=$(rlock acquire --lease 1h --label 'a label of words that do not fit into one line' k)
    export owner
    browse <<'END'
resize 30 44
expect 1 lock
send \r
expect label(.|\n)*a label of words that do not(.|\n)*fit into one line(.|\n)*last runs \((.|\n)*exit 0(.|\n)*exit 3
sh rlock release --owner "$owner" k
expect no locks(.|\n)*last run by
resize 31 44
expect k: free, 0 waiting(.|\n)*last runs
send q
expect no locks
END
}

@test "a small window keeps keys, ages, waiters and the holders' hosts" {
    rlock acquire --lease 1h a-key-that-is-longer-than-a-narrow-window
    browse <<'END'
resize 10 40
expect KEY +HOLDERS +AGE +WAITERS
expect a-key[^\n]*…
expect \? help +q quit +Enter details
absent / f
resize 10 22
expect 1 lock
absent rlock top
resize 24 80
expect KEY +MODE +HOLDERS +AGE +(LEASE +)?WAITERS
resize 50 200
expect a-key-that-is-longer-than-a-narrow-window
END
}

@test "< and > sort, and the cursor stays on its KEY; ? shows the keys; j and k move" {
    rlock acquire --lease 1h bb
    rlock acquire --lease 1h aa
    browse <<'END'
shows bb(.|\n)*aa
send j
send >
shows sorted by age
send >
shows sorted by waiters
send >
shows sorted by key
send \r
shows aa: exclusive
send q
shows sorted by key
send <
shows sorted by waiters
send k
send \r
shows bb: exclusive
send ?
shows Keys(.|\n)*sort otherwise
send q
shows bb: exclusive
send q
END
}

@test "p asks, and pauses the chosen lock or resumes it, only it; n leaves it as it was" {
    rlock acquire --lease 1h 'a*b\c'
    rlock acquire --lease 1h 'axb\c'
    top 'a[*]*' <<'END'
expect 1 lock
send p
expect rlock pause a.[*]b..c(.|\n)*For how long
send n
expect 1 lock
send p
expect For how long
send 1h\x1b
expect 1 lock
send p
expect For how long
send 1h\n
expect Why
send \x1b
expect 1 lock
send p
expect For how long
send 1h\n
expect Why
send maintenance\n
expect Enter shows the locks again
sh rlock status --json | jq -e 'map(.paused.reason) == ["maintenance", null]'
send \n
expect exclusive, paused
send p
expect Let others in again
send \x1b
expect exclusive, paused
send p
expect Let others in again
send n
expect exclusive, paused
send p
expect Let others in again
send y\n
expect Enter shows the locks again
sh rlock status --json | jq -e 'map(.paused) == [null, null]'
send \n
expect 1 lock
send q
status 0
END
}

@test "a filter narrows the rows while it is typed; Escape takes it back" {
    hold a alpha
    hold b beta
    browse <<'END'
expect beta
send /zz
expect no locks match
send \x15ALP
expect alpha
send \r
expect 1 of 2
send \x1b
expect beta
END
    top 'al*' <<'END'
expect 1 lock(.|\n)*alpha
absent beta
send \x03
status 130
END
}

@test "x asks, and takes the chosen lock away or leaves it" {
    rlock acquire --lease 1h k
    browse <<'END'
expect 1 lock
send x
expect rlock force-release k(.|\n)*k is held(.|\n)*Take it away
send n
expect k is left as it was(.|\n)*1 lock
sh rlock status --json k | jq -e '.[0].holders | length == 1'
send x
expect Take it away
send \x1b
expect k is left as it was(.|\n)*1 lock
send x
expect Take it away
send \x03
expect 1 lock
send x
expect Take it away
send y\n
expect Enter shows the locks again
send \n
expect no locks
END
    run -0 rlock status -q k
}

@test "the table stays while the store is away, and continues when it is back" {
    top <<'END'
expect no locks
sh rlock acquire --lease 1h kept-here
expect kept-here
sh kill -STOP $(cat "$REDIS_DIR/pid")
expect out of reach since [0-9:]{8}: no answer
resize 30 90
expect out of reach since(.|\n)*kept-here
sh kill -CONT $(cat "$REDIS_DIR/pid")
expect 1 lock
sh kill -KILL $(cat "$REDIS_DIR/pid")
expect out of reach since [0-9:]{8}: cannot reach
send q
expect \x1b\[\?1049l
status 0
END
    redis_restart_empty
}

@test "top follows the window's size, and stays on the chosen row" {
    for number in {01..40}; do
        rlock acquire --lease 1h "many-$number"
    done
    browse <<'END'
resize 12 80
expect 40 locks
expect many-01
absent many-40
send G
expect many-40
resize 7 20
expect many-40
absent many-01
resize 0 20
expect many-30(.|\n)*many-40
resize 0 0
expect many-30(.|\n)*many-40
resize 60 100
expect many-01(.|\n)*many-20(.|\n)*many-40
END
}

@test "top stops with Ctrl-Z, does not touch the screen meanwhile, and draws again" {
    hold a k
    in_shell <<'END'
send rlock top --color never\n
expect 1 lock
send \x1a
expect \x1b\[\?1049l
expect <2>
send fg\n
expect 1 lock
send \x03
expect <2>
END
}

@test "top refuses misuse before it asks the store, and says so where it has no terminal" {
    run -64 rlock top
    [[ $output == "rlock: top: needs a terminal"* ]]
    run -64 rlock top 'a b'
    run -64 rlock top --json
    run -64 rlock top k -- true
    top --server-wait 0 -u "unix://$T/nothing" <<'END'
expect rlock: top: cannot reach unix://
status 69
END
}

@test "a terminal that is not known is named" {
    export ASAN_OPTIONS+=:detect_leaks=0 # newterm(3) leaves something behind when it fails
    TERM=nowhere-256color on_terminal env TERM=nowhere-256color rlock top <<'END'
expect rlock: top: the terminal 'nowhere-256color' is not known here
expect hint: TERM=xterm rlock top
status 64
END
}

@test "where rlock-top is not installed there is one line, and a hint" {
    cp "$RLOCK" "$T/rlock" # into a directory that has no rlock-top
    [[ ! -e /usr/local/libexec/rlock/rlock-top ]] || skip "rlock-top is installed here"
    RLOCK=$T/rlock top <<'END'
expect rlock: top: the program rlock-top is not installed\r\n
expect hint: install the package rlock-top
status 71
END
}
