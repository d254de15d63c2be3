# rlock doctor: servers that are as they should be, and servers that are not.

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

# only LEVEL CHECK...: of this level are these, and no others.
only() {
    local level=$1
    shift
    json "[.servers[0].findings[] | select(.level == \"$level\") | .check] | unique ==
        $(printf '%s\n' "$@" | jq -Rn '[inputs | select(. != "")] | unique')"
}

@test "a server that is fit: 0, a line for each check" {
    run -0 --separate-stderr rlock doctor
    [[ -z $stderr ]]
    [[ ${lines[0]} == "unix://$REDIS_SOCK" ]]
    for check in latency encryption version scripts restart clock eviction persistence replicas timeout clients rights lock; do
        [[ $output =~ (^|$'\n')"  fine     $check "[^$'\n']* ]] || { echo "no $check" && false; }
    done
    [[ $output == *"redis $(redis-server --version | sed 's/.* v=\([0-9.]*\) .*/\1/')"* ]]
    run -0 --separate-stderr rlock doctor -q
    [[ -z $output && -z $stderr ]]
}

@test "JSON: stable names" {
    run -0 --separate-stderr rlock doctor --json
    json '.verdict == "fit" and (.servers | length) == 1 and (.findings | length) == 1'
    json '.findings[0] | .check == "lock" and .level == "fine" and .advice == null'
    json '.servers[0] | .url == "unix://'"$REDIS_SOCK"'" and .verdict == "fit" and .software == "redis"'
    json '.servers[0] | [.latency_us, .latency_max_us, .uptime_s, .clock_ahead_ms, .replicas] | all(type == "number")'
    json '.servers[0] | .latency_us <= .latency_max_us and .replicas == 0 and .clock_ahead_ms > -900 and .clock_ahead_ms < 900'
    json '[.servers[0].findings[] | [.check, .level, .text] | all(type == "string")] | all'
}

@test "it leaves nothing behind but one lock that is free and will be forgotten" {
    redis set other 1
    rlock doctor
    [[ $(redis keys '*' | sort | xargs) == "other rlock:{rlock-doctor}" ]]
    (($(redis pttl 'rlock:{rlock-doctor}') > 0))
    run -0 rlock status -q rlock-doctor
    rlock doctor --prefix else
    [[ $(redis keys '*' | sort | xargs) == "else:{rlock-doctor} other rlock:{rlock-doctor}" ]]
    [[ $(redis get other) == 1 ]]
    # Two at once: only one can have it, and that is fine.
    hold a rlock-doctor
    run -0 rlock doctor
    [[ $output == *"held by another"* ]]
}

@test "it evicts keys: 1" {
    redis config set maxmemory 100mb
    run -0 rlock doctor --json
    redis config set maxmemory-policy allkeys-lru
    run -1 rlock doctor --json
    json '.verdict == "warnings" and .servers[0].verdict == "warnings"'
    finding eviction warning allkeys-lru noeviction
    only warning eviction
}

@test "it keeps no data: 1" {
    redis config set appendonly no
    run -1 rlock doctor --json --lease 1s
    finding persistence warning "forgets all locks" "appendonly yes"
    redis config set save '3600 1'
    run -1 rlock doctor --json --lease 1s
    finding persistence warning snapshot "appendonly yes"
    redis config set appendonly yes
    redis config set appendfsync no
    run -0 rlock doctor --json
    finding persistence note "power failure"
}

@test "it was started a moment ago without its data: 1" {
    redis config set appendonly no
    run -1 rlock doctor --json --lease 1h
    finding restart warning "forgotten"
    redis config set appendonly yes
    run -0 rlock doctor --lease 1h
}

@test "it closes idle connections: 1" {
    redis config set timeout 5
    run -1 rlock doctor --json
    finding timeout warning 5s
    only warning timeout
    run -0 rlock doctor --lease 9s
}

@test "fewer replicas than asked for: 1; than the server wants: 69" {
    run -1 rlock doctor --json --replicas 1
    finding replicas warning "--replicas asks for 1"
    redis config set min-replicas-to-write 1
    run -69 --separate-stderr rlock doctor --json
    finding replicas unfit "refuses all writes"
    json '.findings | any(.check == "lock" and .level == "unfit" and (.text | contains("NOREPLICAS")))'
    stderr_line '^rlock: doctor: not fit to hold locks: '
}

@test "a replica: 69; and its master, which has it" {
    local port
    port=$(free_ports 1)
    redis config set port "$port"
    redis config set bind 127.0.0.1
    # Its title would hide whose it is from the end of the test.
    bg replica redis-server --port 0 --unixsocket "$T/replica" --dir "$T" --save "" --set-proc-title no \
        --replicaof 127.0.0.1 "$port"
    poll_until 20 eval 'redis info replication | grep -q state=online'
    run -69 --separate-stderr rlock doctor --json -u "unix://$T/replica"
    finding reach unfit "replica of 127.0.0.1:$port"
    run -0 rlock doctor --json
    finding replicas note 1
    json '.servers[0].replicas == 1'
    run -0 rlock doctor --json --replicas 1
}

@test "H13 a server that is busy with a script: 69" {
    redis config set busy-reply-threshold 50
    redis-cli -s "$REDIS_SOCK" eval 'while true do end' 0 >/dev/null 2>&1 3>&- &
    poll_until 10 eval '[[ $(redis-cli -s "$REDIS_SOCK" ping 2>&1) == BUSY* ]]'
    run -69 --separate-stderr rlock doctor --json --connect-timeout 2s
    finding reach unfit BUSY
    redis-cli -s "$REDIS_SOCK" script kill
}

@test "H17 a full server refuses locks: 69" {
    redis config set maxmemory 1
    run -69 --separate-stderr rlock doctor --json
    json '.findings | any(.check == "lock" and .level == "unfit" and (.text | contains("OOM")))'
    [[ $(redis keys '*') == "" ]]
}

@test "out of reach, refused, no Redis: 69" {
    run -69 --separate-stderr rlock doctor -u unix:///nowhere/sock
    [[ $output == *"unfit    reach"*"No such file"*"--url"* ]]
    stderr_line '^rlock: doctor: not fit to hold locks: reach: cannot reach unix:///nowhere/sock'
    run -69 --separate-stderr rlock doctor -q -u unix:///nowhere/sock
    [[ -z $output ]]
    stderr_line '^rlock: doctor: .*cannot reach'
    redis config set requirepass secret
    REDISCLI_AUTH=secret
    export REDISCLI_AUTH
    run -69 --separate-stderr rlock doctor --json
    finding reach unfit NOAUTH --password-file
    RLOCK_PASSWORD=other run -69 --separate-stderr rlock doctor --json
    finding reach unfit WRONGPASS
    [[ $output$stderr != *other* ]]
    RLOCK_PASSWORD=secret run -0 rlock doctor
}

@test "H27 H29 its clock is off: 1; it stands still: 69" {
    local clock=$T/clock
    export SHIM_CLOCK_FILE=$clock
    printf '%-32s' 0 >"$clock"
    redis_stop
    REDIS_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so redis_start
    : >"$T/redis.dirty"
    run -0 rlock doctor
    server_clock 3600000
    run -1 rlock doctor --json
    finding clock warning "ahead of" NTP
    json '.servers[0].clock_ahead_ms > 3500000'
    only warning clock
    server_clock -90000
    run -1 rlock doctor --json
    finding clock warning "behind"
    server_clock freeze
    run -69 --separate-stderr rlock doctor --json
    finding clock unfit "stands still"
}

@test "H20 each right that is missing, by name" {
    local right all
    all='select role time eval evalsha scan subscribe unsubscribe exists hget hmget hset hdel hexists hgetall pexpire publish wait info multi exec'
    for right in $all; do
        redis acl setuser partly reset on '>pw' '~rlock:*' '&rlock:*' '+@all' "-$right" >/dev/null
        run --separate-stderr rlock doctor --json -u "unix://partly:pw@$REDIS_SOCK"
        case $right in
            select) [[ $status == 0 ]] && finding rights note "+select" ;;
            wait)
                [[ $status == 0 && $output != *"+wait"* ]]
                run --separate-stderr rlock doctor --json --replicas 1 -u "unix://partly:pw@$REDIS_SOCK"
                [[ $status == 69 ]] && finding rights unfit "+wait" "ACL SETUSER partly +wait"
                ;;
            info)
                [[ $status == 0 && $output != *"+info"* ]]
                run --separate-stderr rlock doctor --json --grace -u "unix://partly:pw@$REDIS_SOCK"
                [[ $status == 69 ]] && finding rights unfit "+info" "ACL SETUSER partly +info"
                run --separate-stderr rlock doctor --json -u "unix://partly:pw@$REDIS_SOCK" -u "unix://$T/none"
                [[ $status == 69 ]] && finding rights unfit "+info" "ACL SETUSER partly +info"
                ;;
            role | scan | subscribe | unsubscribe | publish)
                [[ $status == 1 ]] && finding rights warning "+$right" "ACL SETUSER partly +$right" ;;
            *) [[ $status == 69 ]] && finding rights unfit "+$right" "ACL SETUSER partly +$right" ;;
        esac
        json "[.servers[0].findings[] | select(.check == \"rights\" and .level != \"fine\") |
            .text | scan(\"[+][a-z]+\")] | unique - [\"+multi\"] == [\"+$right\"] - [\"+multi\"]"
    done
    [[ $(redis keys '*') != *'rlock:{rlock-doctor:none}'* ]]
}

@test "H20 no right to the keys: 69; to the channels: 1" {
    redis acl setuser nokeys reset on '>pw' '~other:*' '&*' '+@all'
    run -69 --separate-stderr rlock doctor --json -u "unix://nokeys:pw@$REDIS_SOCK"
    finding rights unfit '~rlock:*' 'ACL SETUSER nokeys ~rlock:*'
    run -0 rlock doctor --json --prefix other -u "unix://nokeys:pw@$REDIS_SOCK"
    redis acl setuser nochannels reset on '>pw' '~*' resetchannels '+@all'
    run -1 --separate-stderr rlock doctor --json -u "unix://nochannels:pw@$REDIS_SOCK"
    finding rights warning '&rlock:*' 'ACL SETUSER nochannels &rlock:*'
    only warning rights
}

@test "H20 the rights that it looks at are those that the manual names" {
    local documented lacks
    documented=$(sed -n '/^ACL SETUSER/,/^\.Ed/p' "$TESTS/../man/rlock.7" | grep -o '+[a-z|]*' | sort | xargs)
    [[ $documented == *+hset* ]]
    redis acl setuser nothing reset on '>pw' '~*' '&*' '-@all' '+multi' '+exec'
    run -69 --separate-stderr rlock doctor --json --replicas 1 -u "unix://nothing:pw@$REDIS_SOCK"
    lacks=$output
    # It cannot be one of a quorum, either, and no quorum has replicas.
    run -69 --separate-stderr rlock doctor --json -u "unix://nothing:pw@$REDIS_SOCK" -u "unix://$T/none"
    [[ $(jq -r '.servers[0].findings[] | select(.check == "rights") | .text' <<<"$lacks$output" |
        cat - <(echo "+multi +exec") | grep -o '+[a-z]*' | sort -u | xargs) == "$documented" ]]
}

@test "H20 a server that runs no scripts: 69" {
    redis_stop
    REDIS_OPTIONS="$REDIS_OPTIONS --rename-command EVAL \"\"" redis_start
    : >"$T/redis.dirty"
    run -69 --separate-stderr rlock doctor --json
    finding scripts unfit "unknown command" "Lua"
    finding rights unfit "+eval"
}

@test "H20 where neither INFO nor CONFIG is allowed it says what it cannot tell" {
    redis acl setuser plain reset on '>pw' '~*' '&*' '+@all' -info -config
    run -1 --separate-stderr rlock doctor --json -u "unix://plain:pw@$REDIS_SOCK"
    finding eviction warning "cannot tell" "+info"
    finding persistence warning "cannot tell" "+info"
    only warning eviction persistence
    json '.servers[0] | .version != null and .uptime_s == null and .replicas == null'
    # With INFO alone, as at many providers, the most of it is known.
    redis acl setuser plain +info
    run -0 rlock doctor --json -u "unix://plain:pw@$REDIS_SOCK"
    finding persistence fine
}

@test "several servers: each of them, and what they are together" {
    run -69 --separate-stderr rlock doctor --json -u "unix://$REDIS_SOCK" -u unix:///nowhere/1 -u unix:///nowhere/2
    json '.verdict == "unfit" and (.servers | length) == 3'
    json '.findings | any(.check == "quorum" and .level == "unfit" and (.text | startswith("1 of 3")))'
    ln "$REDIS_SOCK" "$REDIS_SOCK.2"
    run -69 --separate-stderr rlock doctor --json -u "unix://$REDIS_SOCK" -u "unix://$REDIS_SOCK.2" -u unix:///nowhere/2
    json '.findings | any(.check == "quorum" and .level == "unfit" and (.text | contains("1 and 2 are the same")))'
}

@test "the local server is fit" {
    mkdir "$T/run"
    XDG_RUNTIME_DIR=$T/run run -0 rlock doctor --local
    [[ ${lines[0]} == local: ]]
    XDG_RUNTIME_DIR=$T/run run -0 rlock local stop
}

@test "colours for a terminal, or if asked for; wrong usage: 64" {
    run -0 rlock doctor --color always
    [[ $output == *$'\e[32mfine'* ]]
    run -0 rlock doctor
    [[ $output != *$'\e'* ]]
    run -64 rlock doctor key
    run -64 rlock doctor -- true
    run -64 rlock doctor --lease 1ms
}
