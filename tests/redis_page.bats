# docs/redis.md: each server that the page sets up is set up as it says, filled with locks, killed
# and started again. A command that does not work, a lock that is forgotten or a finding of the
# doctor that the page does not mention fails. follow HEADING: does what that section tells root to
# do. keeps_all_over_a_kill: all locks are as before when the server was killed and has started
# again.

load helper
load restarts

# The page is for Debian's redis-server, root and other hosts; here all is in $T, on loopback.
setup() {
    start_test
    unset RLOCK_URL
    read -r port <<<"$(free_ports 1)"
    mkdir -p "$T/etc/redis" "$T/bin" "$T/data"
    ln -s "$RLOCK" "$T/bin/rlock"
    printf '#!/bin/sh\ncp "${1#*:}" "$2"\n' >"$T/bin/scp"
    printf '#!/bin/sh\n' | tee "$T/bin/chown" >"$T/bin/apt-get"
    printf '#!/bin/sh\ncp "%s" "%s"\n' "$T/etc/redis/redis.conf" "$T/etc/redis/used.conf" \
        >"$T/bin/service"
    chmod +x "$T/bin/"*
    cat >"$T/etc/redis/redis.conf" <<END
port $port
dir $T/data
save ""
END
    export PATH=$T/bin:$PATH RLOCK_CONFIG=$T/etc/rlock.conf XDG_STATE_HOME=$T/state
}

teardown() {
    kill_redis "$T/data"
    end_processes
}

setup_file() { clean_environment; }
teardown_file() { :; }

# follow HEADING: what that section tells root to do, but for the last line, which asks the doctor.
follow() {
    "$TESTS/page_blocks" redis.md "$1" | sed "s|/etc/|$T/etc/|g; s|locks.example.com|localhost|g
        s|^bind .*|bind 127.0.0.1|; s|^tls-port .*|tls-port $port|
        s|^\(url = .*\)localhost|\1localhost:$port|; \$d" >"$T/steps"
    [[ $("$TESTS/page_blocks" redis.md "$1" | tail -n 1) == 'rlock doctor' ]]
    sh -e "$T/steps"
    chmod 600 "$T/etc/rlock.password"
    start_server
}

# kill_server: kills the server of the page.
kill_server() { kill_redis "$T/data"; }

# server_answers: the server is started, also anew: its port may be taken for a moment.
server_answers() {
    kill -0 "$(cat "$T/data/pid" 2>/dev/null)" 2>/dev/null ||
        redis-server "$T/etc/redis/used.conf" --pidfile "$T/data/pid" --logfile "$T/data/log" \
            --daemonize yes 3>&- >/dev/null
    rlock status -q nothing
}

# start_server: starts it again, and waits until it answers.
start_server() {
    poll_until 20 server_answers || { tail -n 3 "$T/data/log" && return 1; }
}

@test "H157 a Redis in two minutes keeps its locks; the doctor warns of the network alone" {
    follow 'In two minutes'
    run -0 --separate-stderr rlock doctor -q
    keeps_all_over_a_kill
}

# has_written_all: the server has written its append-only file, and uses it.
has_written_all() {
    local persistence
    persistence=$(redis-cli info persistence 3>&-)
    [[ $persistence == *aof_enabled:1* && $persistence == *aof_rewrite_in_progress:0* ]]
}

@test "H157 a Redis that has locks already keeps them over the restart with an append-only file" {
    printf '#!/bin/sh\nexec %s -p %s "$@"\n' "$(command -v redis-cli)" "$port" >"$T/bin/redis-cli"
    chmod +x "$T/bin/redis-cli"
    export RLOCK_URL=redis://127.0.0.1:$port RLOCK_CONFIG=/dev/null
    cp "$T/etc/redis/redis.conf" "$T/etc/redis/used.conf"
    start_server
    rlock acquire --lease 1h kept >/dev/null
    "$TESTS/page_blocks" redis.md What\ matters >"$T/steps"
    sh -e "$T/steps"
    poll_until 20 has_written_all
    kill_server
    echo 'appendonly yes' >>"$T/etc/redis/used.conf"
    start_server
    run -75 rlock status -q kept
}

@test "H157 a Redis with TLS and a user for rlock keeps its locks; the doctor finds nothing" {
    command -v openssl >/dev/null || skip "no openssl here"
    follow 'TLS, and a user for rlock'
    run -0 --separate-stderr rlock doctor
    [[ $output == *'replay'*'the user default may replay'* ]]
    keeps_all_over_a_kill
}

@test "H157 a Redis in two minutes that gets TLS and a user keeps the locks it has" {
    command -v openssl >/dev/null || skip "no openssl here"
    follow 'In two minutes'
    rlock acquire --lease 1h kept >/dev/null
    kill_server
    rm "$T/etc/rlock.conf" "$T/etc/rlock.password"
    sed -i "s/^port .*/port 0/" "$T/etc/redis/redis.conf"
    follow 'TLS, and a user for rlock'
    run -75 rlock status -q kept
    keeps_all_over_a_kill
}

@test "docs/redis.md: users other than root read the password by their group" {
    local program
    for program in groupadd chgrp usermod; do
        printf '#!/bin/sh\necho "%s $*" >>"%s"\n' $program "$T/admin" >"$T/bin/$program"
        chmod +x "$T/bin/$program"
    done
    "$TESTS/page_blocks" redis.md 'Users other than root' | sed "s|/etc/|$T/etc/|g" >"$T/steps"
    (umask 077 && echo PASSWORD >"$T/etc/rlock.password")
    sh -e "$T/steps"
    [[ $(stat -c %a "$T/etc/rlock.password") == 640 ]]
    [[ $(sort "$T/admin" | cut -d' ' -f1 | xargs) == 'chgrp groupadd usermod' ]]
}

# Version 1.0.0 told people to set it up so.
@test "H157 the doctor warns of a user default who may not replay the append-only file" {
    command -v openssl >/dev/null || skip "no openssl here"
    follow 'TLS, and a user for rlock'
    kill_redis "$T/data"
    sed -i 's/^user default off.*/user default off/' "$T/etc/redis/used.conf"
    start_server
    rlock acquire --lease 1h lost >/dev/null
    run -1 --separate-stderr rlock doctor
    [[ $output == *warning*replay*'forgets all locks'* ]]
    kill_redis "$T/data"
    start_server
    # The file is as bad as the warning says; a server that keeps them would need no warning.
    rlock status -q lost
    # The advice can be followed where no user may administer the server.
    rlock acquire --lease 1h kept >/dev/null
    add=${output#*replay*-> add }
    add=${add%% to its line *}
    sed -i '/^user default off/d' "$T/etc/redis/used.conf"
    echo "user default off $add" >>"$T/etc/redis/used.conf"
    kill_redis "$T/data"
    start_server
    run -75 rlock status -q kept
}

# CONFIG REWRITE, as a Sentinel does it, writes what the running server has.
@test "H157 CHANGELOG: a user default that is off gets its rights in the file and in the server" {
    local line command rewritten log=$TESTS/../CHANGELOG.md conf=$T/etc/redis/used.conf
    line=$(grep -om 1 '`user default off +[^`]*' "$log")
    command=$(grep -om 1 '`ACL SETUSER default[^`]*' "$log")
    printf '%s\n' 'port 0' "unixsocket $T/sock" "dir $T/data" 'appendonly yes' 'user default off' \
        'user admin on nopass ~* &* +@all' >"$conf"
    export RLOCK_URL=unix://admin:any@$T/sock RLOCK_CONFIG=/dev/null
    start_server
    rlock acquire --lease 1h kept >/dev/null
    admin() { redis-cli -s "$T/sock" --user admin --pass any --no-auth-warning 3>&-; }
    [[ $(admin <<<"${command#?}") == OK ]]
    sed -i '/^user default/d' "$conf"
    echo "${line#?}" >>"$conf"
    run rlock doctor
    [[ $output == *'may replay the append-only file'* ]]
    for rewritten in OK ''; do
        [[ ! $rewritten || $(admin <<<'CONFIG REWRITE') == OK ]]
        kill_server
        start_server
        run -75 rlock status -q kept
    done
}
