# rlock doctor: servers that are as they should be, and servers that are not. finding, diagnosed
# STATUS OPTIONS CHECK LEVEL: what the doctor says of that CHECK, with these options; only LEVEL
# CHECK...: it has no other finding of that level. fails_as_foretold FIRST LAST: for each of the
# manual's rights with these numbers, what fails without it is what the doctor foretells.

load helper

setup_file() {
    start_file --appendonly yes
    as_default_user
}

# finding CHECK LEVEL [TEXT [ADVICE]]: the JSON of one server in $output has it.
finding() {
    json ".servers[0].findings | any(.check == \"$1\" and .level == \"$2\" and
        (.text | contains(\"${3-}\")) and ((.advice // \"\") | contains(\"${4-}\")))"
}

# diagnosed STATUS OPTIONS CHECK LEVEL [TEXT [ADVICE]]: with these options, it has that finding.
diagnosed() {
    run "-$1" --separate-stderr rlock doctor --json $2
    finding "${@:3}"
}

# only LEVEL CHECK...: of this level are these, and no others but a latency: the machine may stand
# still.
only() {
    local level=$1
    shift
    json "[.servers[0].findings[] | select(.level == \"$level\" and .check != \"latency\") | .check] | unique ==
        (\"$*\" / \" \" | unique)"
}

@test "a server that is fit: status 0, and a line for each check" {
    quiet 0 doctor
    [[ ${lines[0]} == "unix://$REDIS_SOCK" ]]
    for check in latency encryption version scripts restart clock eviction persistence replicas \
        timeout clients rights lock; do
        [[ $output =~ (^|$'\n')"  fine     $check "[^$'\n']* ]] || { echo "no $check" && false; }
    done
    [[ $output == *"$(redis-server --version | sed -E 's/^(\w+) server v=([0-9.]*) .*/\L\1 \2/')"* ]]
    prints_nothing 0 doctor -q
}

@test "--json has the names and types of the manual" {
    run -0 --separate-stderr rlock doctor --json
    json '.verdict == "fit" and (.servers | length) == 1 and (.findings | length) == 1'
    json '.findings[0] | .check == "lock" and .level == "fine" and .advice == null'
    json '.servers[0] | .url == "unix://'"$REDIS_SOCK"'" and .verdict == "fit" and (.software | IN("redis", "valkey"))'
    json '.servers[0] | [.latency_us, .latency_max_us, .uptime_s, .clock_ahead_ms, .replicas] | all(type == "number")'
    json '.servers[0] | .latency_us <= .latency_max_us and .replicas == 0 and .clock_ahead_ms > -900 and .clock_ahead_ms < 900'
    json '[.servers[0].findings[] | [.check, .level, .text] | all(type == "string")] | all'
}

@test "the doctor leaves nothing behind but one lock that is free and will be forgotten" {
    redis set other 1
    rlock doctor
    [[ $(redis keys '*' | sort | xargs) == "other rlock:{rlock-doctor}" ]]
    (($(redis pttl 'rlock:{rlock-doctor}') > 0))
    run -0 rlock status -q rlock-doctor
    rlock doctor --prefix else
    [[ $(redis keys '*' | sort | xargs) == "else:{rlock-doctor} other rlock:{rlock-doctor}" ]]
    [[ $(redis get other) == 1 ]]
    run -0 rlock history rlock-doctor
    [[ $output == 'rlock: no runs' ]]
    status_json --all '. == []'
    [[ $(rlock metrics) != *rlock-doctor* ]]
    # Two at once: only one can have it, and that is fine.
    hold a rlock-doctor
    prints 0 '*held by another*' doctor
    status_json '. == []'
    status_json rlock-doctor '.[0].holders | length == 1'
}

# Each row: settings of the server; options; the status; and what is found.
@test "settings that endanger locks are a warning: exit 1, or unfit: exit 69, with what helps" {
    while IFS='|' read -r settings options wanted check level text advice; do
        echo "--- $settings $options"
        eval "redis config set ${settings:-appendonly yes}"
        run "-$wanted" --separate-stderr rlock doctor --json $options
        finding "$check" "$level" "$text" "$advice"
        [[ $wanted != 1 ]] || json '.verdict == "warnings" and .servers[0].verdict == "warnings"'
        [[ $check$level != @(eviction|timeout)warning ]] || only warning "$check"
        redis config set appendfsync everysec maxmemory 0 maxmemory-policy noeviction save '' \
            timeout 0 appendonly yes replica-read-only yes no-appendfsync-on-rewrite no
    done <<'END'
maxmemory 100mb||0|eviction|fine||
maxmemory 100mb maxmemory-policy allkeys-lru||1|eviction|warning|allkeys-lru|noeviction
appendonly no|--lease 1s|1|persistence|warning|forgets all locks|appendonly yes
appendonly no save "3600 1"|--lease 1s|1|persistence|warning|snapshot|appendonly yes
appendfsync no||0|persistence|note|power failure|
appendfsync always no-appendfsync-on-rewrite yes||0|persistence|note|is rewritten|rewrite no
appendonly no|--lease 1h|1|restart|warning|forgotten|
|--lease 1h|0|restart|fine||
timeout 5||1|timeout|warning|5s|
timeout 5|--lease 9s|0|timeout|fine||
|--replicas 1|1|replicas|warning|a lock must wait for 1|
replica-read-only no||1|replicas|warning|demoted|
min-replicas-to-write 1||69|replicas|unfit|refuses all writes|
END
    json '.findings | any(.check == "lock" and .level == "unfit" and (.text | contains("too few replicas")))'
    stderr_line '^rlock: doctor: not fit to hold locks: '
}

@test "a replica is unfit: exit 69; its master is fit, and says how many it has" {
    local port
    port=$(free_ports 1)
    redis config set port "$port"
    redis config set bind 127.0.0.1
    # The process's title would hide whose it is from the end of the test.
    bg replica redis-server --port 0 --unixsocket "$T/replica" --dir "$T" --save "" \
        --set-proc-title no \
        --replicaof 127.0.0.1 "$port"
    poll_until 20 eval 'redis-cli -s "$T/replica" info replication 3>&- |
        grep -q master_link_status:up'
    poll_until 10 acknowledged 1 redis-cli -s "$REDIS_SOCK"
    diagnosed 69 "-u unix://$T/replica" reach unfit "replica of 127.0.0.1:$port"
    diagnosed 0 '' replicas note 1
    json '.servers[0].replicas == 1'
    run -0 rlock doctor --json --replicas 1
}

@test "H13 a server that is busy with a script is unfit: exit 69" {
    redis config set busy-reply-threshold 50
    redis-cli -s "$REDIS_SOCK" eval 'while true do end' 0 >/dev/null 2>&1 3>&- &
    poll_until 10 eval '[[ $(redis-cli -s "$REDIS_SOCK" ping 2>&1) == BUSY* ]]'
    diagnosed 69 "--connect-timeout 10s" reach unfit "busy with a script"
    redis-cli -s "$REDIS_SOCK" script kill
}

@test "H17 a full server refuses locks: exit 69" {
    redis config set maxmemory 1
    run -69 --separate-stderr rlock doctor --json
    json '.findings | any(.check == "lock" and .level == "unfit" and (.text | contains("out of memory")))'
    [[ $(redis keys '*') == "" ]]
}

@test "a server that is out of reach, refuses the password or is not Redis is unfit: exit 69" {
    prints 69 '*unfit    reach*No such file*' doctor -u unix:///nowhere/sock
    stderr_line '^rlock: doctor: not fit to hold locks: reach: cannot reach unix:///nowhere/sock'
    run -69 --separate-stderr rlock doctor -q -u unix:///nowhere/sock
    [[ -z $output ]]
    stderr_line '^rlock: doctor: .*cannot reach'
    redis config set requirepass secret
    REDISCLI_AUTH=secret
    export REDISCLI_AUTH
    diagnosed 69 '' reach unfit "asks for a password" --password-file
    RLOCK_PASSWORD=other diagnosed 69 '' reach unfit "wrong password"
    [[ $output$stderr != *other* ]]
    RLOCK_PASSWORD=secret run -0 rlock doctor
}

@test "H27 H29 a clock that is off is a warning: exit 1; one that stands still is unfit: exit 69" {
    local clock=$T/clock
    export SHIM_CLOCK_FILE=$clock
    printf '%-32s' 0 >"$clock"
    redis_stop
    REDIS_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so redis_start
    : >"$T/redis.dirty"
    run -0 rlock doctor
    server_clock 3600000
    diagnosed 1 '' clock warning "ahead of" NTP
    json '.servers[0].clock_ahead_ms > 3500000'
    only warning clock
    server_clock -90000
    diagnosed 1 '' clock warning "behind"
    server_clock freeze
    diagnosed 69 '' clock unfit "stands still"
}

# as_partly WHAT STATUS rlock WORD...: appends WHAT to "broken" unless that is how it ends for the
# user "partly".
as_partly() {
    local what=$1 wanted=$2 got=69
    shift 2
    while ((got == 69)); do # the wait was too short for an answer
        got=0
        RLOCK_URL=unix://partly:pw@$REDIS_SOCK "$@" >"$T/as_partly" 2>&1 </dev/null || got=$?
    done
    if ((got != wanted)); then
        broken+=" $what"
        # For want of a right, and of nothing else.
        ((got == 77)) || { echo "$what: $got" && cat "$T/as_partly" && return 1; }
    fi
}

# do_everything RIGHT: tries all as a user without it; failures in "broken". The keys dead-… have
# run out by now.
do_everything() {
    local right=$1
    broken=
    as_partly new 0 rlock run "new-$right" -- true
    rlock run "known-$right" -- true
    as_partly known 0 rlock run "known-$right" -- true
    [[ $broken == *known* ]] || rlock status -q "known-$right" || broken+=" back"
    as_partly try 75 rlock run -n "held-$right" -- true
    as_partly wait 75 rlock run -w 400ms "held-$right" -- true
    as_partly dead 0 rlock run -n "dead-$right" -- true
    as_partly dead-readers 0 rlock run -n "readers-$right" -- true
    as_partly list 0 rlock status
    as_partly show 0 rlock status "held-$right"
    as_partly latch-set 0 rlock latch set "set-$right" 1
    rlock latch set "latch-$right" 2
    as_partly latch-count 0 rlock latch count-down "latch-$right"
    as_partly latch-wait 75 rlock latch wait -w 400ms "latch-$right"
    as_partly latch-show 75 rlock latch status "latch-$right"
    as_partly latch-list 0 rlock latch list
}

# Prints what fails according to the doctor's words in $output.
foretold() {
    jq -r '.servers[0].findings[] | select(.check == "rights" and .level != "fine") | .text' \
        <<<"$output" |
        sed -E 's/^without( [+~&][^ ]+)+( \(keys\)| \(channels\))? //' |
        while read -r text; do
            case $text in
                "nothing works")
                    echo new known try wait dead dead-readers list show
                    echo latch-set latch-count latch-wait latch-show latch-list
                    ;;
                "nothing works until the server has the scripts from another user") ;;
                "no lock can be acquired, no latch set or counted down")
                    echo new known wait dead dead-readers latch-set latch-count ;;
                "no KEY that is new to the server can become a lock or a latch")
                    echo new latch-set ;;
                "no lock can be released, waited for, or acquired after a holder that died")
                    echo back wait dead dead-readers ;;
                "no lock that has waiters can be released, no latch counted down")
                    echo latch-count ;;
                "no lock can be tried or waited for that others hold, or held when they died")
                    echo try wait dead dead-readers ;;
                "no lock can be waited for") echo wait latch-wait ;;
                "no latch can be shown, nor a lock that several hold or wait for,"*)
                    echo list latch-show dead-readers ;;
                "locks and latches cannot be listed") echo list latch-list ;;
                # These are slower, unsafe, or for options that are not given here.
                "waiters are not woken, but have to ask" | "a replica is not noticed") ;;
                "only database 0 can be used" | "CLIENT LIST does not tell "*) ;;
                *looks*needs\ less | *"may only look"* | "grant +multi to see"*) ;;
                *) echo "unknown: $text" ;;
            esac
        done | xargs -n 1 | sort -u
}

# fails_as_foretold FIRST LAST: for each of the manual's rights with these numbers, what fails for a
# user who lacks it is what the doctor says of it.
fails_as_foretold() {
    local right all broken
    mapfile -t all < <(rights_in_manual rlock |
        grep -o '+[a-z|]*' | tr -d +)
    all=("${all[@]:$1 - 1:$2 - $1 + 1}")
    ((${#all[@]} > 5)) # the manual's line was understood
    for right in "${all[@]}"; do
        rlock acquire --lease 10m "held-$right"
        rlock acquire --lease 1s "dead-$right"
        rlock acquire --lease 1s --read "readers-$right"
        rlock acquire --lease 1s --read "readers-$right" # a second reader
    done >/dev/null
    poll_until 10 is_free "readers-$right"
    for right in "${all[@]}"; do
        # shellcheck disable=SC2046 # they are words
        redis acl setuser partly reset on '>pw' $(manual_rights) "-$right" >/dev/null
        run --separate-stderr rlock doctor --json -u "unix://partly:pw@$REDIS_SOCK"
        do_everything "$right"
        diff <(foretold) <(xargs -n 1 <<<"$broken" | sort -u) ||
            { echo "without +$right" && false; }
    done
}

@test "H20 without one of the manual's rights, 1 to 8, that fails of which the doctor says so" {
    fails_as_foretold 1 8
}

@test "H20 without one of the manual's rights, 9 to 16, that fails of which the doctor says so" {
    fails_as_foretold 9 16
}

@test "H20 without one of the manual's rights, from 17 on, that fails of which the doctor says so" {
    fails_as_foretold 17 36
}

@test "H20 the doctor's verdict and its trial of a lock do not contradict each other" {
    # shellcheck disable=SC2046 # they are words
    redis acl setuser partly reset on '>pw' $(manual_rights) -hdel
    diagnosed 69 "-u unix://partly:pw@$REDIS_SOCK" rights unfit "no lock can be released"
    json '.findings | any(.check == "lock" and .level == "unfit" and (.text | contains("could not be released")))'
    # Where somebody else has that lock it is not known whether this user could.
    redis flushall
    hold a rlock-doctor
    redis acl setuser partly +hdel -hset
    run -69 --separate-stderr rlock doctor --json -u "unix://partly:pw@$REDIS_SOCK"
    json '.findings | any(.check == "lock" and .text == "held by another doctor: not tried")'
    # Without EVAL all goes well as long as somebody else has sent the scripts.
    redis acl setuser partly +hset -eval
    diagnosed 69 "-u unix://partly:pw@$REDIS_SOCK" rights unfit "until the server has the scripts"
    run -0 rlock run -u "unix://partly:pw@$REDIS_SOCK" k -- true
    redis script flush
    run -77 rlock run -u "unix://partly:pw@$REDIS_SOCK" k -- true
}

@test "H20 the command that the doctor advises is enough; users that only look have one, too" {
    redis acl setuser poor reset on '>pw' '+multi' '+exec' '+client|setname'
    run -69 --separate-stderr rlock doctor --json -u "unix://poor:pw@$REDIS_SOCK"
    advice=$(jq -r '[.servers[0].findings[] | select(.check == "rights") | .advice][0]' \
        <<<"$output")
    [[ $advice == "ACL SETUSER poor "*"; ACL SAVE"* ]]
    json '[.servers[0].findings[] | select(.check == "rights" and .level != "note") | .advice][1:] | all(. == null)'
    advice=${advice%%;*}
    redis acl setuser poor ${advice#ACL SETUSER poor}
    diagnosed 0 "-u unix://poor:pw@$REDIS_SOCK" rights fine
    # As the manual has it, and as the doctor.
    redis acl setuser poor -hset
    diagnosed 69 "-u unix://poor:pw@$REDIS_SOCK" rights note "it may only look"
    redis acl setuser poor -hgetall
    run -69 --separate-stderr rlock doctor --json -u "unix://poor:pw@$REDIS_SOCK"
    advice=$(jq -r '.servers[0].findings[] | select(.text | contains("only looks")) | .advice' \
        <<<"$output")
    [[ $advice == "ACL SETUSER looker on >PASSWORD "* ]]
    advice=${advice%%;*}
    [[ $(rights_in_manual looker | grep -o '+[a-z|]*' |
        sort) == \
        "$(grep -o '+[a-z|]*' <<<"$advice" | sort)" ]]
    redis acl setuser looker reset on '>pw' ${advice#ACL SETUSER looker on >PASSWORD}
    rlock latch set gate 1
    hold a k
    redis script flush
    export RLOCK_URL=unix://looker:pw@$REDIS_SOCK
    run -0 --separate-stderr rlock status
    [[ $output == *$'\nk '* && -z $stderr ]]
    run -0 --separate-stderr rlock latch list
    [[ $output == *gate* && -z $stderr ]]
    run -75 rlock latch status gate
    run -75 rlock status -q k
    run -77 rlock run new -- true
    run -77 rlock force-release --now --yes k
    run -77 rlock latch count-down gate
}

@test "memory near the limit is a warning: exit 1, with numbers" {
    used=$(redis info memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p')
    redis config set maxmemory $((used * 20))
    diagnosed 0 '' memory fine " MB are used ("
    json '.servers[0] | .maxmemory == '$((used * 20))' and .used_memory > 0'
    # A tenth more than now, less what the next connections take.
    redis config set maxmemory $((used * 105 / 100))
    run --separate-stderr rlock doctor --json
    finding memory warning "refuses new locks" "CONFIG SET maxmemory "
    finding memory warning "" "CONFIG REWRITE"
}

@test "the doctor says whether the server is in grace" {
    diagnosed 1 --grace grace warning "may have lost locks" "rlock init"
    run -0 --separate-stderr rlock doctor --json
    json '.servers[0].findings | all(.check != "grace")'
    rlock init
    diagnosed 0 --grace grace fine "at once"
    redis_stop
    redis_start # with its data, but that cannot be told
    : >"$T/redis.dirty"
    diagnosed 1 "--grace --lease 60s" grace warning "restarted or promoted" "wait"
    run -75 rlock run --grace --lease 60s -n k -- true || true
    diagnosed 1 "--grace --lease 60s" grace warning "refuses new ones for another "
    # Users who have not asked for it are told, too.
    diagnosed 0 '' grace note "refuses new ones for another "
}

@test "H20 a right without which the doctor can see nothing: 69, and the command that gives it" {
    redis acl setuser partly reset on '>pw' '~*' '&*' '+@all' -select
    diagnosed 69 "-u unix://partly:pw@$REDIS_SOCK?db=1" reach unfit "select" "ACL SETUSER partly "
    finding reach unfit "select" " +select "
}

@test "H20 no right to the keys: exit 69; to the channels: exit 1" {
    redis acl setuser nokeys reset on '>pw' '~other:*' '&*' '+@all'
    run -69 --separate-stderr rlock doctor --json -u "unix://nokeys:pw@$REDIS_SOCK"
    finding rights unfit '~rlock:*' 'ACL SETUSER nokeys ~rlock:*'
    run -0 rlock doctor --json --prefix other -u "unix://nokeys:pw@$REDIS_SOCK"
    redis acl setuser nochannels reset on '>pw' '~*' resetchannels '+@all'
    run -1 --separate-stderr rlock doctor --json -u "unix://nochannels:pw@$REDIS_SOCK"
    finding rights warning '&rlock:*' 'ACL SETUSER nochannels &rlock:*'
    only warning rights
}

@test "each check of the sources is in the manual" {
    grep -rhoPz '(diagnosis_add|(add|judge)_finding)\(\s*[\w>.&-]+,\s*"\K[a-z-]+' "$TESTS/../src" |
        tr '\0' '\n' | sort -u >"$T/checks"
    [[ $(wc -l <"$T/checks") -ge 30 ]]
    sed -n 's/^\.It //p' "$TESTS/../man/rlock-doctor.1" | tr -d ' ' | tr , '\n' | sort -u >"$T/manual"
    run -0 comm -23 "$T/checks" "$T/manual"
    [[ ! $output ]]
}

@test "H20 the rights that the doctor looks at are those that the manual names" {
    documented=$(rights_in_manual rlock |
        grep -o '+[a-z|]*' | sort -u | xargs)
    [[ $documented == *+hset* ]]
    redis acl setuser nothing reset on '>pw' '~*' '&*' '-@all' '+multi' '+exec'
    run -69 --separate-stderr rlock doctor --json --replicas 1 -u "unix://nothing:pw@$REDIS_SOCK"
    lacks=$output
    # The server cannot be one of a quorum, either, and no quorum has replicas.
    run -69 --separate-stderr rlock doctor --json -u "unix://nothing:pw@$REDIS_SOCK" \
        -u "unix://$T/none"
    [[ $(jq -r '.servers[0].findings[] | select(.check == "rights") | .text' <<<"$lacks$output" |
        cat - <(echo "+multi +exec") | grep -o '+[a-z|]*' | sort -u | xargs) == "$documented" ]]
}

@test "H20 the rights of the manual are those that scripts and connections need" {
    documented=$(rights_in_manual rlock |
        grep -o '+[a-z|]*' | tr -d + | sort -u)
    # The other needs of --mirror are in a list of their own.
    scripts=$(find "$TESTS/../src/rules/lua" -name '*.lua' ! -path '*/mirror[./]*' -print0 |
        xargs -0 grep -ohE "redis\.p?call\('[A-Z]+'" |
        sed "s/.*'\(.*\)'/\1/" | tr A-Z a-z | sort -u)
    [[ $scripts == *hexists* ]]
    around='client|setname eval evalsha exec multi role scan select subscribe unsubscribe wait'
    diff <(echo "$documented") <(printf '%s\n' $scripts $around | sort -u)
}

@test "H20 a server that runs no scripts is unfit: exit 69" {
    redis_stop
    REDIS_OPTIONS="$REDIS_OPTIONS --rename-command EVAL elsewhere" redis_start
    : >"$T/redis.dirty"
    diagnosed 69 '' scripts unfit "unknown command" "Lua"
    finding rights unfit "+eval"
}

@test "H20 where neither INFO nor CONFIG is allowed the doctor says what it cannot tell" {
    redis acl setuser plain reset on '>pw' '~*' '&*' '+@all' -info -config
    diagnosed 1 "-u unix://plain:pw@$REDIS_SOCK" eviction warning "cannot tell" "+info"
    finding persistence warning "cannot tell" "+info"
    only warning eviction persistence
    json '.servers[0] | .version != null and .uptime_s == null and .replicas == null'
    # With only INFO, as at many providers, most of it is known.
    redis acl setuser plain +info
    diagnosed 0 "-u unix://plain:pw@$REDIS_SOCK" persistence fine
}

@test "several servers: one that has two names is not a majority" {
    ln "$REDIS_SOCK" "$REDIS_SOCK.2"
    run -69 --separate-stderr rlock doctor --json -u "unix://$REDIS_SOCK" \
        -u "unix://$REDIS_SOCK.2" -u unix:///nowhere/2
    json '.findings | any(.check == "quorum" and .level == "unfit" and (.text | contains("1 and 2 are the same")))'
}

@test "the local server is fit" {
    mkdir "$T/run"
    XDG_RUNTIME_DIR=$T/run run -0 rlock doctor --local
    [[ ${lines[0]} == local: ]]
    XDG_RUNTIME_DIR=$T/run run -0 rlock local stop
}

@test "on a terminal an advice that has no room is a line of its own" {
    redis config set maxmemory 1gb
    redis config set maxmemory-policy allkeys-lru
    on_terminal rlock doctor --color never <<'EOF'
resize 24 80
expect  warning  eviction     allkeys-lru may throw locks away when its memory is full\r\n {24}-> CONFIG SET maxmemory-policy noeviction; 
status 1
EOF
    prints 1 '* full -> CONFIG SET maxmemory-policy noeviction; *' doctor
}

@test "off a terminal the doctor has no colours without --color always; wrong usage: exit 64" {
    run -0 rlock doctor --color always
    [[ $output == *$'\e[32mfine'* ]]
    run -0 rlock doctor
    [[ $output != *$'\e'* ]]
    run -64 rlock doctor key
    run -64 rlock doctor -- true
    run -64 rlock doctor --lease 1ms
}
