# rlock status: rows, single locks, JSON, GLOBs, -q, --watch. held_many N: so many locks with a
# lease of an hour and no process.

load helper

# no_controls: no control character is in $output but the ends of lines.
no_controls() { # in $output, but for the ends of lines
    [[ $(tr -d '\n' <<<"$output" | tr -dc '\000-\037\177' | wc -c) == 0 ]]
}

@test "status where nothing is locked: no row, an empty list, and 0" {
    prints 0 '' status
    status_json '. == []'
    status_json k 'length == 1 and .[0].key == "k" and .[0].holders == [] and .[0].waiters == []'
}

@test "--json has the names and types of the manual" {
    hold a deploy --label "the label" --lease 40s
    queue w1 deploy --label second
    queue w2 deploy
    run -0 --separate-stderr rlock status --json deploy
    json 'length == 1 and (.[0] | .key == "deploy" and .mode == "exclusive" and .limit == null and
          (.fence | type) == "number")'
    json '.[0] | .fence == .holders[0].fence and (.holders | length) == 1'
    json '.[0].holders[0] | (.owner | test("^[0-9a-f-]{36}$")) and .mode == "exclusive" and
          .count == 1 and .slot == null and .command == "sh" and .label == "the label" and
          .pid == '"${pid[a]}"' and .host == "'"$(hostname)"'" and .user == "'"$(id -un)"'" and
          (.lease_left_ms > 20000 and .lease_left_ms <= 40000)'
    json '.[0].holders[0].since | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z$")'
    json '(.[0].holders[0].since | sub("\\.[0-9]*Z"; "Z") | fromdate) - '"$(date +%s)"' |
          . > -60 and . < 60'
    json '.[0].waiters | map(.position) == [1, 2] and map(.label) == ["second", null] and
          all(.mode == "exclusive" and .command == "sh" and (.owner | length) == 36 and
              (.since | test("Z$")))'
    json '.[0].waiters | map(.pid) == ['"${pid[w1]}, ${pid[w2]}"']'
}

@test "--json has ages, and how long a holder waited" {
    hold a k
    began=$(now_ms)
    queued k bg b rlock run k -- sh -c ": >'$T/b.up'; exec sleep 1000"
    sleep 0.5 # an age that is asserted below
    run -0 rlock status --json k
    now=$(now_ms)
    json '.[0].holders[0] | .waited_ms == 0 and .kept == false and .age_ms >= 500'
    json ".[0].waiters[0] | .age_ms >= 400 and .age_ms <= $((now - began + 1))"
    granted=$(now_ms) # at the earliest
    kill "${pid[a]}"
    poll_until 15 test -e "$T/b.up"
    run -0 rlock status --json k
    now=$(now_ms)
    json ".[0].holders[0] | .pid == ${pid[b]} and .waited_ms >= 400 and .waited_ms <= $((now - began + 1))"
    json ".[0].holders[0].age_ms <= $((now - granted + 1))"
    run -0 rlock status k
    [[ $output =~ "    waited      "[0-9] ]]
    # A lock that was free was not waited for.
    run -0 rlock run other -- rlock status --json other
    json '.[0].holders[0].waited_ms == 0'
}

@test "status of one KEY, or --long, shows all that is known of holders and waiters" {
    hold a alpha --label "some label"
    queue w alpha --label "other label"
    owner=$(rlock status --json alpha | jq -r '.[0].holders[0].owner')
    run -0 rlock status alpha
    [[ $output == *"$owner"* && $output == *"some label"* && $output == *"other label"* ]]
    [[ $output == *"${pid[a]}"* && $output == *"${pid[w]}"* ]]
    run -0 rlock status --long
    [[ $output == *"$owner"* && $output == *"other label"* ]]
    run -0 rlock status
    [[ $output != *"$owner"* ]]
}

@test "a GLOB means the KEYs that it matches; escaped, it is a KEY" {
    hold a deploy-a
    hold b deploy-b
    hold c nightly
    status_json 'deploy-*' 'map(.key) | sort == ["deploy-a", "deploy-b"]'
    status_json 'deploy-[ac]' 'night?y' 'map(.key) | sort == ["deploy-a", "nightly"]'
    status_json 'nothing*' '. == []'
    none='^rlock: status: nothing matches nothing\*$'
    says 0 "$none" status 'nothing*'
    [[ ! $output && ${#stderr_lines[@]} == 1 ]]
    says 0 "$none" status 'nothing*' 'deploy-*'
    [[ $output == *deploy-a*deploy-b* && ${#stderr_lines[@]} == 1 ]]
    prints_nothing 0 status -q 'nothing*'
    status_json nightly free 'deploy-a' 'map(.key) | sort == ["deploy-a", "free", "nightly"]'
    hold d 'a*b'
    hold e 'axb'
    hold f 'a\b'
    status_json 'a[*]b' 'map(.key) == ["a*b"]'
    run -75 rlock status -q 'a\*b'
    status_json 'a\*b' 'a\\b' 'map(.key) == ["a*b", "a\\b"]'
}

@test "a KEY that is not a lock hides none of the others" {
    hold a alpha
    rlock latch set beta 1
    rlock latch set delta 1
    run -78 --separate-stderr rlock status alpha beta gamma delta
    [[ ${#lines[@]} == 3 && ${lines[1]} == 'alpha '*exclusive* && ${lines[2]} == 'gamma '*free* ]]
    [[ $stderr == $'rlock: status: beta: the key is a latch; rlock latch status shows it\nrlock: status: delta: '* ]]
    run -78 --separate-stderr rlock status --json alpha beta
    json 'map(.key) == ["alpha"]'
    run -78 --separate-stderr rlock status -q alpha beta
    [[ -z $output ]]
    run -0 --separate-stderr rlock status 'alph*' 'bet*'
    [[ ${#lines[@]} == 2 && $stderr == 'rlock: status: nothing matches bet*' ]]
}

@test "rows are sorted by KEY, also where keys and globs are named in another order" {
    for key in b-2 a.b a-b ab a b; do
        hold "$key" "$key"
    done
    status_json 'map(.key) == ["a", "a-b", "a.b", "ab", "b", "b-2"]'
    run -0 rlock status
    [[ $(cut -d' ' -f1 <<<"$output" | xargs) == "KEY a a-b a.b ab b b-2" ]]
    status_json free b 'a*' b-2 'map(.key) == ["a", "a-b", "a.b", "ab", "b", "b-2", "free"]'
}

@test "another prefix is another name space, also to globs" {
    as_default_user
    hold a k --prefix one
    hold b k --prefix two
    status_json --prefix one 'length == 1 and .[0].holders[0].pid == '"${pid[a]}"
    status_json --prefix 'on*' '. == []'
    status_json '. == []'
}

@test "status -q prints nothing: 0 when all KEYs are free, exit 75 when one is held" {
    hold a k
    prints_nothing 75 status -q k
    run -75 rlock status -q free k
    prints_nothing 0 status -q free other
    run -0 rlock status k
    terminate a
    run -0 rlock status -q k
}

@test "labels: control characters are escaped; other scripts and quotes stay; a long one is cut" {
    printf -v long '%0800d' 0
    hold l long --label "größe 漢字 \"quoted\" \\ back $long"
    status_json long '.[0].holders[0].label | startswith("größe 漢字 \"quoted\" \\ back 000000000")'
    hold a k --label $'evil\e[31m\nline\x07\x9b'
    run -0 rlock status k
    [[ $output == *evil* && $output == *line* ]]
    no_controls
    run -75 rlock run -n k -- true
    no_controls
    [[ ${#lines[@]} == 1 ]]
    status_json k '.[0].holders[0].label | startswith("evil\u001b[31m\nline\u0007")'
}

# held_many NUMBER: makes so many locks with a lease of an hour and no process.
held_many() {
    local i
    hold template template --lease 1h
    for ((i = 1; i <= $1; i++)); do
        echo "COPY rlock:{template} rlock:{$(printf 'many-%04d' "$i")}"
    done | redis-cli -s "$REDIS_SOCK" >/dev/null
}

@test "--watch on a terminal fits the window; Ctrl-C restores the screen" {
    held_many 30
    export T
    # \x1b[?1049h shows the other screen. "resize ROWS COLUMNS"; 0: the terminal does not say.
    on_terminal rlock status --color never --watch 1h 'many-*' <<'EOF'
expect \x1b\[\?1049h
expect [0-9]{2}:[0-9]{2}:[0-9]{2}  30 locks
expect many-0020[^\n]*\r+\n[^\n]*… and 10 more
resize 8 30
expect 30 locks
expect KEY +HOLDERS +AGE[^\r\n]*\r+\n[^\n]*many…00[^\n]*\r
expect \n[^\n]*many…00[^\n]*\r+\n[^\n]*… and 26 more
resize 0 30
expect KEY +HOLDERS +AGE[^\r\n]*\r+\n[^\n]*many…00[^\n]*\r
expect … and 10 more
resize 8 0
expect KEY +MODE +HOLDERS
expect … and 26 more
resize 40 100
expect many-0030
absent more
send \x03
expect \x1b\[\?1049l
status 130
EOF
}

@test "on a terminal rows fit the window: keys are cut in the middle, hosts stay; a pipe has all" {
    long=projects/shop/frontend/checkout/pipelines/deploy/production
    rlock acquire --lease 1h "$long-1"
    rlock acquire --lease 1h "$long-2"
    run -0 rlock run "$long-1" --no-reentrant -n -E 0 -- true
    run -0 rlock run "$long-3" -- sh -c 'exit 0'
    run -0 rlock run "$long-3" -- true
    host=$(hostname)
    on_terminal rlock status --color never <<EOF
expect \n[^\n]*on-1  [^\n]*${host}[^\n]*\n[^\n]*on-2  [^\n]*${host}
absent [^\r\n]{81}
status 0
EOF
    on_terminal rlock history --color never <<EOF
expect \n[^\n]*on-3  [^\n]*${host}[^\n]*exit 0
absent [^\r\n]{81}
status 0
EOF
    on_terminal rlock status --color never "$long-1" <<<$'expect ^'"$long-1: "$'\nstatus 0'
    on_terminal rlock status --color never --long <<<"expect $long-2: "$'\nstatus 0'
    [[ $(rlock status) == *"$long-1 "* && $(rlock history) == *" $long-3 "* ]]
}

@test "--watch with one KEY on a terminal: its lines are cut to the window" {
    hold a k --label "$(printf '漢%.0s' {1..60})"
    on_terminal rlock status --color never --watch k <<'EOF'
expect label       (漢){32}\r
resize 6 41
expect holder
expect label       (漢){12}\r+\n[^\n]*… and 6 more lines
send \x03
status 130
EOF
}

@test "a lock of a later rlock is named although it was not asked for, and all others are shown" {
    local one words='later: layout lock/2 needs a newer rlock'
    redis hset 'rlock:{later}' k lock/2
    redis hset 'rlock:{foreign}' data 1
    hold a k
    for one in status metrics; do
        run -78 --separate-stderr rlock "$one"
        [[ $output =~ ($'\nk '|key=\"k\") ]]
        [[ $stderr == "rlock: $one: $words"* && $stderr != *foreign* ]]
    done
    run -78 rlock status -q 'l*'
    run -0 rlock status k
    # 3 is the status "unknown" of monitors.
    prints 3 "*$words*" check
    # A command that continues reports the lock, and stays.
    bg watch rlock status --watch 100ms
    poll_until 10 contains "$T/watch.out" '1 lock, 1 written by a newer rlock'
    bg_says events 'events: listening' rlock events -v
    poll_until 10 contains "$T/events.err" "$words"
    alive "${pid[watch]}"
}

@test "a survey that fails is not taken for one that has found a lock of a later rlock" {
    redis hset 'rlock:{later}' k lock/2
    rlock run other -- true
    redis acl setuser some reset on '>pw' '+@all' '~rlock:{later}' '~rlock:!*' '&*'
    export RLOCK_URL=unix://some:pw@$REDIS_SOCK
    says 77 'no right to the keys' status
    run -77 --separate-stderr rlock metrics
    [[ $output == *$'\nrlock_up 0\n'* ]]
}

@test "--watch on a terminal keeps the table while the store is away" {
    on_terminal rlock status --color never --watch 100ms <<'EOF'
expect [0-9]{2}:[0-9]{2}:[0-9]{2}  no locks
sh rlock acquire --lease 1h kept-here
expect 1 lock\r
expect kept-here  exclusive
sh kill -STOP $(cat "$REDIS_DIR/pid")
expect out of reach since [0-9:]{8}: no answer\r+\n[^\n]*\r+\n[^\n]*KEY [^\n]*\n[^\n]*kept-here  exclusive
sh kill -CONT $(cat "$REDIS_DIR/pid")
expect 1 lock\r
sh kill -KILL $(cat "$REDIS_DIR/pid")
expect out of reach since [0-9:]{8}: cannot reach unix://[^\n]*\n[^\n]*\r+\n[^\n]*KEY [^\n]*\n[^\n]*kept-here  exclusive
absent rlock:
send \x03
expect \x1b\[\?1049l
status 130
EOF
    redis_restart_empty
}

@test "--watch stops with Ctrl-Z, leaves the screen alone meanwhile, and draws again" {
    hold a k
    in_shell <<'EOF'
send rlock status --color never --watch 100ms\n
expect 1 lock\r
send \x1a
expect \x1b\[\?1049l
expect <2>
send bg\n
expect <2>
send sleep 0.5\n
expect <2>
absent 1 lock
send fg\n
expect 1 lock\r
send \x03
expect <2>
EOF
}

@test "--watch shows what a server says with its control characters escaped" {
    bg odd python3 "$TESTS/odd_server.py" "$T/odd.sock" escapes
    poll_until 10 listens "$T/odd.sock"
    RLOCK_URL=unix://$T/odd.sock on_terminal rlock status --color never --watch 100ms <<'EOF'
expect no locks
resize 24 400
expect out of reach since [^\n]*ERR \\x1b\[31mred\\x9b
absent \x1b\[31m
send \x03
status 130
EOF
}

@test "--watch off a terminal: a table a round; an outage is reported once, and its end" {
    bg watch rlock status --watch 100ms
    poll_until 10 contains "$T/watch.out" "no locks"
    "$RLOCK" acquire --lease 1h k
    poll_until 10 contains "$T/watch.out" "k    exclusive"
    grep -qE '^[0-9-]{10} [0-9:]{8}  1 lock$' "$T/watch.out"
    redis_stop
    poll_until 10 contains "$T/watch.err" "out of reach since"
    times=$(wc -l <"$T/watch.out")
    sleep 0.5 # a few rounds more
    [[ $(wc -l <"$T/watch.out") == "$times" && $(wc -l <"$T/watch.err") == 1 ]]
    redis_start
    poll_until 10 contains "$T/watch.err" "rlock: status: back after"
    poll_until 10 eval '(($(wc -l <"$T/watch.out") > times))'
    [[ $(wc -l <"$T/watch.err") == 2 && $(<"$T/watch.out") != *$'\e'* ]]
    kill -INT "${pid[watch]}"
    ends_with watch 130
    # JSON has nothing for people.
    bg watch rlock status --watch 100ms --json
    poll_until 10 eval '(($(wc -l <"$T/watch.out") > 2))'
    kill -INT "${pid[watch]}"
    finish watch
    jq -se 'all(type == "array")' "$T/watch.out"
}

@test "--watch: a server that becomes a replica meanwhile is out of reach" {
    bg watch rlock status --watch 100ms
    poll_until 10 contains "$T/watch.out" "no locks"
    redis replicaof 127.0.0.1 1
    poll_until 10 contains "$T/watch.err" "this is a read-only replica of 127.0.0.1:1"
    redis replicaof no one
    poll_until 10 contains "$T/watch.err" "rlock: status: back after"
}

@test "--color and NO_COLOR decide about colours; off a terminal there are none" {
    hold a k
    run -0 rlock status --color never k
    [[ $output != *$'\e['* ]]
    run -0 rlock status k
    [[ $output != *$'\e['* ]]
    run -0 rlock status --color always k
    NO_COLOR=1 run -0 rlock status --color always k
}

@test "a thousand locks are listed in order; a reader that has seen enough ends it by SIGPIPE" {
    held_many 1000
    run -0 --separate-stderr rlock status 'many-*'
    [[ ${#lines[@]} == 1001 && ${lines[1]} == many-0001* && ${lines[1000]} == many-1000* &&
        -z $stderr ]]
    status_json 'many-*' 'length == 1000 and map(.key) == (map(.key) | sort)'
    # The list is more than a pipe holds, so that rlock still writes when "head" has ended.
    run bash -c 'rlock status --long "many-*" 2>"$1" | head -n 1; exit ${PIPESTATUS[0]}' \
        - "$T/err"
    [[ $status == 141 && $output == "many-0001: exclusive"* && ! -s $T/err ]]
}

@test "queues that are too long for one answer are shown whole, in their order" {
    for key in long longer; do
        hold "$key" "$key"
        redis eval "local now = redis.call('TIME')[1] * 1000
            redis.call('HSET', KEYS[1], 'q', '1 ' .. ARGV[1] .. ' 0')
            for i = 1, ARGV[1] do
                local place = 'q:' .. i
                redis.call('HSET', KEYS[1], place, string.format('%.0f owner%d %.0f x h u 1 c -',
                    now + 600000, i, now), 'w:owner' .. i, place)
            end" 1 "rlock:{$key}" "$([[ $key == long ]] && echo 450 || echo 1001)"
    done
    status_json 'long*' 'map([.key, (.holders | length), (.waiters | length)]) ==
          [["long", 1, 450], ["longer", 1, 1001]]'
    json 'all(.waiters | map(.owner) == [range(1; length + 1) | "owner\(.)"])'
    run -0 rlock status
    [[ ${lines[2]} == longer*" 1001"* ]]
}

@test "standard output that is closed or full is an error" {
    hold a k
    [[ -c /dev/full ]] || skip "no /dev/full here"
    run rlock status k >/dev/null
    held_many 30 # a text much larger than the buffer, which fails before the end
    for command in 'status k' 'status --json' metrics 'help run'; do
        run bash -c "rlock $command >/dev/full"
        [[ $status == 71 && $output \
            == "rlock: cannot write to standard output: No space left on device" ]]
    done
    run bash -c 'rlock status --watch 100ms k >/dev/full'
    [[ $status == 71 ]]
    run bash -c 'rlock status k >&-'
    [[ $status == 71 && $output == "rlock: cannot write to standard output: "* ]]
    rlock latch set gate 1
    for command in 'latch list' 'init --print --grant locker'; do
        run bash -c "rlock $command >/dev/full"
        [[ $status == 71 && $output == "rlock: cannot write to standard output: "* ]]
    done
}
