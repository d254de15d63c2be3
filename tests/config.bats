# Where settings come from, and how passwords stay secret.

load helper

setup_file() {
    start_file --databases 16
    unset RLOCK_CONFIG
}

setup() {
    T=$BATS_TEST_TMPDIR
    LOG=$T/log
    export RLOCK_TEST_ID=$T
    declare -gA pid=()
    export XDG_CONFIG_HOME=$T/xdg
    mkdir -p "$XDG_CONFIG_HOME/rlock"
}

prefix_used() { # the prefix of the one key in the database
    redis keys '*' | sed 's/:{.*//'
    redis flushall >/dev/null
}

@test "option before environment before the user's file" {
    as_default_user
    echo "prefix = from-user-file" >"$XDG_CONFIG_HOME/rlock/config"
    echo "prefix = from-config-option" >"$T/other"
    rlock run k -- true
    [[ $(prefix_used) == from-user-file ]]
    RLOCK_CONFIG=$T/other rlock run k -- true
    [[ $(prefix_used) == from-config-option ]]
    RLOCK_CONFIG=$XDG_CONFIG_HOME/rlock/config rlock run --config "$T/other" k -- true
    [[ $(prefix_used) == from-config-option ]]
    RLOCK_PREFIX=from-environment rlock run --config "$T/other" k -- true
    [[ $(prefix_used) == from-environment ]]
    RLOCK_PREFIX=from-environment rlock run --prefix from-option --config "$T/other" k -- true
    [[ $(prefix_used) == from-option ]]
    rm "$XDG_CONFIG_HOME/rlock/config"
    rlock run k -- true
    [[ $(prefix_used) == rlock ]]
}

@test "\$HOME/.config is where XDG_CONFIG_HOME is unset" {
    as_default_user
    mkdir -p "$T/home/.config/rlock"
    echo "prefix=from-home" >"$T/home/.config/rlock/config"
    env -u XDG_CONFIG_HOME HOME="$T/home" "$RLOCK" run k -- true
    [[ $(prefix_used) == from-home ]]
}

@test "the user's file goes over the system's" {
    as_default_user
    unshare -m true 2>/dev/null || skip "no mount name spaces here"
    [[ ! -e /etc/rlock.conf ]] || skip "there is a /etc/rlock.conf"
    printf 'prefix = system\nlease = 20s\n' >"$T/system"
    in_system() {
        unshare -m sh -c 'mount --bind "$1" /etc && shift && exec "$@"' sh "$T/etc" "$RLOCK" "$@" 3>&-
    }
    cp -r --preserve=mode /etc/passwd /etc/group /etc/nsswitch.conf "$T/" 2>/dev/null || true
    mkdir "$T/etc" && cp "$T/passwd" "$T/group" "$T/etc/" && cp "$T/system" "$T/etc/rlock.conf"
    unshare -m mount --bind "$T/etc" /etc 2>/dev/null || skip "no bind mounts here"
    # shellcheck disable=SC2016
    run -0 in_system run k -- sh -c 'echo $RLOCK_LEASE_MS'
    [[ $output == 20000 && $(prefix_used) == system ]]
    echo 'prefix = user' >"$XDG_CONFIG_HOME/rlock/config"
    # shellcheck disable=SC2016
    run -0 in_system run k -- sh -c 'echo $RLOCK_LEASE_MS'
    [[ $output == 20000 && $(prefix_used) == user ]]
}

@test "forms of a config file" {
    as_default_user
    printf '# a comment\n\n  url =  %s  \nprefix=p\r\n' "$RLOCK_URL" >"$T/config"
    unset RLOCK_URL
    rlock run --config "$T/config" k -- true
    [[ $(prefix_used) == p ]]
}

@test "a config file that makes no sense: 78, with file and line" {
    local text
    for text in 'prefix' 'nonsense = 1' 'lease = 5x' 'prefix = a b' 'url = gopher://x' 'lease = 10ms'; do
        printf '# one\n%s\n' "$text" >"$T/config"
        run -78 --separate-stderr rlock run --config "$T/config" k -- true
        stderr_line "^rlock: .*$T/config.*2"
    done
    printf 'prefix = p\nurl = %s\0nonsense\n' "$RLOCK_URL" >"$T/config"
    run -78 --separate-stderr rlock run --config "$T/config" k -- true
    stderr_line "^rlock: .*$T/config:2: .*NUL byte"
    run -78 rlock status --config "$T"
    run -64 --separate-stderr rlock run --config "$T/missing" k -- true
    stderr_line missing
}

@test "several URLs are a quorum, from wherever they come" {
    local several="unix://$T/a unix://$T/b  unix://$T/c"
    refused() { # STATUS COMMAND...: without a connection
        run "-$1" --separate-stderr "${@:2}"
        [[ $stderr != *reach* ]]
    }
    echo "url = $several redis://h:x" >"$T/config"
    refused 78 rlock run --config "$T/config" k -- true
    stderr_line "^rlock: run: $T/config:1: url \\(number 4 of several\\) has a port"
    RLOCK_URL="$several nonsense" refused 78 rlock run k -- true
    stderr_line '^rlock: run: RLOCK_URL \(number 4 of several\) has no scheme'
    refused 64 rlock run -u redis://a -u redis:// k -- true
    stderr_line '^rlock: run: --url \(number 2 of several\) has no host'
    refused 64 rlock run -u 'redis://a redis://' k -- true
    stderr_line '^rlock: run: --url \(number 2 of several\) has no host'
    printf 'url = redis://a\nurl = redis://b\n' >"$T/config"
    refused 78 rlock run --config "$T/config" k -- true
    stderr_line "^rlock: run: $T/config:2: .*one line"
    RLOCK_URL=' ' refused 78 rlock run k -- true
    stderr_line 'RLOCK_URL is empty'
    # An option goes over all of the variable's.
    RLOCK_URL=$several run -0 rlock run -u "unix://$REDIS_SOCK" k -- true
}

@test "H87 the same node twice in a quorum" {
    run -78 --separate-stderr rlock run -u redis://h -u redis://i -u redis://H:6379/3 k -- true
    stderr_line '^rlock: run: --url names the same node twice: redis://H:6379/3$'
    RLOCK_URL="unix://:pw@$T/a unix://:other@$T/a?db=1" run -78 --separate-stderr rlock status
    stderr_line "^rlock: status: RLOCK_URL names the same node twice: unix://$T/a\\?db=1$"
    run -64 --separate-stderr rlock run --local -u "unix://$REDIS_SOCK" k -- true
    stderr_line 'local: beside another store'
}

@test "H103 the passwords of several URLs" {
    local several="redis://:s3cret@127.0.0.1:1 redis://ann:s3cret@127.0.0.1:2 unix://:s3cret@$T/c"
    RLOCK_URL=$several run -0 rlock run -u "unix://$REDIS_SOCK" k -- env
    [[ $output == *"RLOCK_URL=redis://127.0.0.1:1 redis://ann:@127.0.0.1:2 unix://$T/c"* ]]
    [[ $output != *s3cret* ]]
    redis acl setuser deployer on '>s3cret' '~*' '&*' '+@all' >/dev/null
    hold a k -u "unix://deployer:s3cret@$REDIS_SOCK"
    run tr '\0' ' ' <"/proc/${pid[a]}/cmdline"
    [[ $output != *s3cret* ]]
    # A password with a blank in it is wrong; no part of it is shown.
    run -64 --separate-stderr rlock run -u 'redis://:s3cret or@h' k -- true
    [[ $stderr != *s3cret* && $stderr != *or@* ]]
    run -64 --separate-stderr rlock run k "--url=$several" true
    [[ $stderr != *s3cret* ]]
}

@test "--replicas, --grace: values that make sense" {
    local value
    for value in 0 1 100 majority all; do
        run -64 --separate-stderr rlock run --replicas $value --replicas x k -- true
        stderr_line "--replicas 'x' is not a number"
        printf 'replicas = %s\nprefix = a b\n' $value >"$T/config"
        run -78 --separate-stderr rlock run --config "$T/config" k -- true
        stderr_line ':2: prefix'
    done
    for value in -1 +1 101 1x '' Majority 99999999999999999999; do
        run -64 rlock acquire --replicas "$value" k
    done
    printf 'grace = maybe\n' >"$T/config"
    run -78 --separate-stderr rlock run --config "$T/config" k -- true
    stderr_line ":1: grace 'maybe' is not yes or no"
}

@test "the database of an address" {
    rlock run -u "unix://$REDIS_SOCK?db=3" k -- true
    [[ $(redis -n 3 dbsize) == 1 && $(redis dbsize) == 0 ]]
    redis flushall
    start_proxy
    rlock run -u "redis://${proxy[proxy]}/4" k -- true
    [[ $(redis -n 4 dbsize) == 1 && $(redis dbsize) == 0 ]]
    run -69 --separate-stderr rlock run -u "unix://$REDIS_SOCK?db=99" k -- touch "$T/run"
    [[ ! -e $T/run ]]
}

@test "H19 a password in the address, in RLOCK_PASSWORD, in a file, in the config file" {
    as_default_user
    redis config set requirepass 'p@ss/w:rd%'
    run -77 --separate-stderr rlock run k -- touch "$T/run"
    stderr_line '^rlock: .*([Aa]uth|[Pp]assword)'
    [[ ! -e $T/run ]]
    run -0 rlock run -u "unix://:p%40ss%2Fw%3Ard%25@$REDIS_SOCK" k -- true
    RLOCK_PASSWORD='p@ss/w:rd%' run -0 rlock run k -- true
    printf 'p@ss/w:rd%%\n' >"$T/password"
    chmod 600 "$T/password"
    run -0 rlock run --password-file "$T/password" k -- true
    printf 'password = p@ss/w:rd%%\n' >"$T/config"
    chmod 600 "$T/config"
    run -0 rlock run --config "$T/config" k -- true
    printf 'password-file = %s\n' "$T/password" >"$T/config"
    run -0 rlock run --config "$T/config" k -- true
    RLOCK_PASSWORD=wrong run -77 --separate-stderr rlock run k -- touch "$T/run"
    [[ $stderr != *wrong* || $stderr == *"wrong password"* ]]
    RLOCK_PASSWORD=wr0ng run -77 --separate-stderr rlock status -v
    [[ $stderr != *wr0ng* && ! -e $T/run ]]
    run -64 rlock run --password-file "$T/missing" k -- true
    printf 'p@ss/w:rd%%\0\n' >"$T/password"
    run -64 --separate-stderr rlock run --password-file "$T/password" k -- touch "$T/run"
    stderr_line "^rlock: .*$T/password.*NUL byte"
    [[ ! -e $T/run ]]
}

@test "H19 a user with a password" {
    redis acl setuser deployer on '>s3cret' '~rlock:*' '&rlock:*' '+@all' >/dev/null
    run -0 rlock run -u "unix://deployer:s3cret@$REDIS_SOCK" k -- true
    RLOCK_PASSWORD=s3cret run -0 rlock run -u "unix://deployer:@$REDIS_SOCK" k -- true
    run -77 rlock run -u "unix://deployer:other@$REDIS_SOCK" k -- true
    run -77 rlock run -u "unix://nobody:s3cret@$REDIS_SOCK" k -- true
}

@test "H103 the command does not get the passwords" {
    redis acl setuser deployer on '>s3cret' '~*' '&*' '+@all' >/dev/null
    export RLOCK_URL=unix://deployer:s3cret@$REDIS_SOCK
    RLOCK_PASSWORD=s3cret run -0 rlock run k -- env
    [[ $output != *s3cret* && $output != *RLOCK_PASSWORD* && $output == *RLOCK_URL=unix://*"$REDIS_SOCK"* ]]
    RLOCK_PASSWORD=s3cret run -0 rlock run --keep-credentials k -- env
    [[ $output == *"RLOCK_URL=$RLOCK_URL"* && $output == *RLOCK_PASSWORD=s3cret* ]]
}

@test "H103 no password in the process list, nor in what -v says, nor in the store" {
    redis acl setuser deployer on '>s3cret' '~*' '&*' '+@all' >/dev/null
    hold a k -v -u "unix://deployer:s3cret@$REDIS_SOCK"
    local one
    for one in "${pid[a]}" "$(agent_of "${pid[a]}")" "$(command_of "${pid[a]}")"; do
        [[ -n $one ]]
        run tr '\0' ' ' <"/proc/$one/cmdline"
        [[ $output != *s3cret* ]]
    done
    run cat "$T/a.err"
    [[ $output != *s3cret* ]]
    [[ $(redis hgetall "rlock:{k}") != *s3cret* ]]
    run -0 rlock status -u "unix://deployer:s3cret@$REDIS_SOCK"
    [[ $output != *s3cret* ]]
}
