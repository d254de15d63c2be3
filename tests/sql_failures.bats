#!/usr/bin/env bats
# The messages of a database that does not serve: in words, at once or after a while, and with which
# status. each_database: what follows is done with each of them. own_driver: $OWN is an rlock whose
# driver is a script. bent_names: a name service for the driver that is away as long as there is
# $T/away; server_takes, user_takes N: so many connections; url_shown: as messages show it.
# error_server: a server that answers each connection with the error in the file "error".
# with_database NAME: what follows is done with that one, or the test is skipped.
load helper
load databases

setup_file() {
    databases_start
}

# bent_names: as own_driver, with a name service that is away as long as $T/away exists.
bent_names() {
    own_driver "ASAN_OPTIONS=$ASAN_OPTIONS SHIM_DNS_AWAY='$T/away' \\
        LD_PRELOAD='$RLOCK_TEST_TOOLS/shim_dns.so' exec \"\$DRIVER\""
    touch "$T/away"
}

# told NAME: what was said, with HOST for the name.
told() { sed "s#$1#HOST#g" "$T/$1.err"; }

@test "H145 words in the name of a host decide nothing: each is as any other" {
    each_database
    bent_names
    local name names=(authentication-db certificate-db password pg_hba.conf role starting-up
        too-many-clients failed 28p01 expected-authentication)
    # An attempt that is cut off says something else.
    for name in plain "${names[@]}"; do
        bg "$name" "$OWN" run -u "$DATABASE://u:p@$name.invalid/locks" --connect-timeout 2m \
            --server-wait 2m k -- true
    done
    for name in plain "${names[@]}"; do
        poll_until 30 contains "$T/$name.err" 'trying again'
        alive "${pid[$name]}"
        diff <(told "$name") <(told plain)
    done
    contains "$T/plain.err" 'Temporary failure in name resolution; trying again'
    for name in plain "${names[@]}"; do
        terminate "$name"
    done
}

@test "H145 words in the path of a socket decide nothing" {
    [[ $DATABASES == *postgresql* ]] || skip 'there is no PostgreSQL'
    for name in 'x failed: FATAL:  28P01: password' ':  42501: x' 'password authentication failed'; do
        directory=$T/$name
        mkdir "$directory"
        says 69 '^rlock: k: cannot reach postgresql:///locks.*: No such file or directory' run \
            -u "postgresql://u:p@/locks?host=${directory// /%20}" --connect-timeout 1m \
            --server-wait 0 k -- true
    done
}

@test "H145 a name service that is away is waited for; a name that does not exist is not" {
    each_database
    bent_names
    bg a "$OWN" run -u "$DATABASE://u:p@nowhere.invalid/locks" --server-wait 1m k -- true
    poll_until 20 contains "$T/a.err" 'trying again'
    rm "$T/away"
    ends_with a 69
    contains "$T/a.err" 'there is no host of that name'
    contains "$T/a.err" 'hint: getent hosts NAME'
}

@test "H166 a name that fails later on: the address that it had is kept, and so is a lock" {
    each_database
    local whole=$RLOCK url=${RLOCK_URL/127.0.0.1/store.test} before
    own_driver "SHIM_DNS_STORE='$T/addresses' LD_PRELOAD='$RLOCK_TEST_TOOLS/shim_dns.so' \\
        ASAN_OPTIONS=$ASAN_OPTIONS exec \"\$DRIVER\""
    RLOCK=$OWN
    echo 127.0.0.1 >"$T/addresses"
    stay a k --lease 15s -u "$url"
    : >"$T/addresses"
    says 69 'there is no host of that name' run -u "$url" k -- true
    for name in unknown away; do
        [[ $name == unknown ]] || rm "$T/addresses"
        before=$(pgrep -P "$(agent_of "${pid[a]}")" -f "rlock-.*$DATABASE")
        kill -KILL "$before"
        renewed k
    done
    ends_well a
    RLOCK=$whole
}

@test "a driver whose library is missing: one line at once, and which library it is" {
    each_database
    own_driver "echo \"rlock-$DATABASE: error while loading shared libraries: libdb.so.5: cannot open shared object file: No such file or directory\" >&2; exit 127"
    bg a "$OWN" run --server-wait 1m k -- touch "$T/ran"
    finish a 20
    [[ $status == 69 && ! -e $T/ran ]]
    diff "$T/a.err" - <<END
rlock: k: $(url_shown): the program rlock-$DATABASE cannot be started: libdb.so.5: cannot open shared object file: No such file or directory
hint: install the package with that library: libpq5, libmariadb3 or libcurl4 on Debian
END
}

url_shown() {
    echo "$DATABASE://127.0.0.1:$(database_port "$DATABASE")/locks"
}

@test "a driver that the linker refuses is told as that, not as an outage" {
    each_database
    local real=${RLOCK%/*}/rlock-$DATABASE library
    library=$(ldd "$real" | sed -n 's/.*\(lib\(pq\|mariadb\)\.so[.0-9]*\) .*/\1/p')
    mkdir -p "$T/own"
    OWN=$T/own/rlock
    cp "$RLOCK" "$OWN"
    sed "s/${library//./\\.}/${library//lib/lix}/g" "$real" >"$T/own/rlock-$DATABASE"
    chmod +x "$T/own/rlock-$DATABASE"
    bg a "$OWN" run --server-wait 1m k -- true
    ends_with a 69 20
    contains "$T/a.err" "cannot be started: ${library//lib/lix}"
    [[ $(wc -l <"$T/a.err") == 2 ]]
}

@test "a driver that is not there, or cannot be executed" {
    each_database
    own_driver ''
    rm "$T/own/rlock-$DATABASE"
    # Where rlock was installed there may be one.
    bg a "$OWN" run --server-wait 1m k -- true
    finish a 20
    [[ $status == 69 || $status == 0 ]]
    [[ $status == 0 ]] || contains "$T/a.err" "the program rlock-$DATABASE is not installed"
    [[ $status == 0 ]] || contains "$T/a.err" 'hint: install the package of that name, or build'
    printf '\177ELF' >"$T/own/rlock-$DATABASE"
    chmod +x "$T/own/rlock-$DATABASE"
    bg b "$OWN" run --server-wait 1m k -- true
    ends_with b 69 20
    contains "$T/b.err" "the program rlock-$DATABASE cannot be started: Exec format error"
}

# server_takes CONNECTIONS: so many in all, the administrator's included.
server_takes() {
    case $DATABASE in
    postgresql)
        database_sql postgresql "ALTER SYSTEM SET max_connections = $1"
        database_kill postgresql
        database_start postgresql
        ;;
    mysql) database_sql mysql "SET GLOBAL max_connections = $1" ;;
    esac
}

@test "H9 24 jobs of one lock at a server that takes 20 connections: all of them run" {
    each_database
    server_takes 20
    for i in {1..24}; do
        bg "j$i" rlock run --connect-timeout 20s --server-wait 2m k -- sh -c "echo x >>'$LOG'"
    done
    all_end 0 90 j{1..24}
    [[ $(wc -l <"$LOG") == 24 ]]
    server_takes 100
}

# user_takes CONNECTIONS: so many of the user locker; -1: any number.
user_takes() {
    case $DATABASE in
    postgresql) database_sql postgresql "ALTER ROLE locker CONNECTION LIMIT $1" ;;
    mysql) database_sql mysql "ALTER USER locker@'%' WITH MAX_USER_CONNECTIONS ${1/#-1/0}" ;;
    esac
}

@test "H9 a full server is waited for as a queue is: as long as -w says, not with -n" {
    each_database
    user_takes 1
    stay holder other
    refused 69 run -n --server-wait 1m k -- touch "$T/ran"
    stderr_line "^rlock: k: $(url_shown): user locker: too many clients\$"
    stderr_line '^hint: max_connections'
    timed 4900 20000 says 69 'too many clients' run -w 5s --server-wait 1s k -- touch "$T/ran"
    bg a rlock run --server-wait 1s --connect-timeout 1s k -- true
    poll_until 10 contains "$T/a.err" 'too many clients; trying again'
    sleep 4 # longer than it waits for a server that is away
    alive "${pid[a]}"
    ends_well holder
    finish a 60
    user_takes -1
    [[ $status == 0 && ! -e $T/ran ]]
    contains "$T/a.err" 'the store is back'
}

# as_administrator: the URL of one who may do everything.
as_administrator() {
    local dir=$BATS_FILE_TMPDIR/$DATABASE
    case $DATABASE in
    postgresql) echo "postgres://root@/locks?host=$dir&port=$POSTGRESQL_PORT" ;;
    mysql) echo "mysql://root@/locks?socket=$dir/sock" ;;
    esac
}

# A user "other" who may log in and read one of the tables: the last of the names in other_table.
other_user() {
    case $DATABASE in
    postgresql) database_sql postgresql "CREATE ROLE other LOGIN PASSWORD 'x'" ;;
    mysql) database_sql mysql "CREATE USER other@'%' IDENTIFIED BY 'x'" ;;
    esac
    other_table=$(database_tables "$DATABASE")
    database_sql "$DATABASE" "GRANT SELECT ON ${other_table##* } TO other"
    export RLOCK_URL RLOCK_PASSWORD=x
    RLOCK_URL=$DATABASE://other@127.0.0.1:$(database_port "$DATABASE")/locks
}

# drop_other_user: ends what other_user has begun.
drop_other_user() {
    [[ $DATABASE != postgresql ]] || database_sql postgresql 'DROP OWNED BY other'
    database_sql "$DATABASE" 'DROP USER other'
    unset RLOCK_PASSWORD
}

@test "a user without rights: named, with the remedy; the doctor has all at once" {
    each_database
    local -A grant=([postgresql]='ON rlock_record TO "other"'
        [mysql]="ON rlock_record TO 'other'@'%'")
    other_user
    refused 77 run k -- touch "$T/ran"
    stderr_line "^rlock: k: $(url_shown): user other: no right to the database, or to its tables\$"
    stderr_line '^hint: .*rlock init --grant USER'
    run -69 rlock doctor
    # shellcheck disable=SC2076 # words
    [[ $output =~ 'user other'[^\ ]*' lacks '.*'INSERT, UPDATE, DELETE on '${other_table##* }' -> GRANT SELECT, INSERT, UPDATE, DELETE' ]]
    [[ $output == *"${grant[$DATABASE]}"* ]]
    drop_other_user
}

@test "init --grant gives a user all that is needed; --print shows it" {
    each_database
    other_user
    run -0 rlock init --print --grant other
    [[ $output == *'CREATE TABLE'*'GRANT SELECT, INSERT, UPDATE, DELETE ON rlock_'*other*';' ]]
    run -77 rlock run k -- true
    refused 77 init --grant other
    env -u RLOCK_PASSWORD "$RLOCK" init -u "$(as_administrator)" --grant other
    run -0 --separate-stderr rlock run k -- echo ran
    [[ $output == ran && -z $stderr ]]
    run -0 rlock status
    run -1 rlock doctor # a crash of the server may lose locks
    [[ $output =~ 'user other'[^\ ]*' may do all that rlock needs' ]]
    drop_other_user
}

@test "init --grant to a user that the server does not know makes none" {
    each_database
    local client=(env -u RLOCK_PASSWORD "$RLOCK")
    run -69 "${client[@]}" init -u "$(as_administrator)" --grant unknown
    RLOCK_URL=$DATABASE://unknown@127.0.0.1:$(database_port "$DATABASE")/locks
    run -77 "${client[@]}" status
}

@test "init --print --grant quotes a name, whatever is in it" {
    each_database
    local -A wanted=([postgresql]='TO "o'"'"'t\h""er";' [mysql]="TO 'o''t\\\\h\"er'@'10.%';")
    local -A user=([postgresql]="o't\\h\"er" [mysql]="o't\\h\"er@10.%")
    run -0 rlock init --print --grant "${user[$DATABASE]}"
    echo "wanted: ${wanted[$DATABASE]}"
    [[ $output == *"${wanted[$DATABASE]}"* ]]
    run -64 rlock init --grant ""
}

@test "the doctor says how far the server is, and how many connections are taken, of how many" {
    each_database
    user_takes 7
    stay a k
    run -1 rlock doctor
    [[ $output =~ 'fine     latency      '[0-9.]+' ms, at most ' ]]
    [[ $output == *'fine     encryption   none, on this host'* ]]
    [[ $output =~ 'connections  '[1-9][0-9]*' of '[1-9][0-9]*' are taken; this user may have 7' ]]
    ends_well a
    user_takes -1
}

@test "H134 a password that an outer rlock has taken out is missed, and the message says so" {
    each_database
    RLOCK_URL=${RLOCK_URL/:p%20w@/@}
    export RLOCK_PASSWORD='p w'
    refused 77 run k -- "$RLOCK" run other -- touch "$T/ran"
    stderr_line "^rlock: other: $(url_shown): user locker: it asks for a password\$"
    stderr_line '^hint: an outer rlock takes passwords out .* --keep-credentials'
    run -0 rlock run --keep-credentials k -- "$RLOCK" run other -- true
    unset RLOCK_PASSWORD
    says 77 '^hint: --password-file or RLOCK_PASSWORD' run k -- true
    [[ $stderr != *--keep-credentials* && ! -e $T/ran ]]
}

# A server that answers each connection with the error that the file "error" says: of PostgreSQL an
# SQLSTATE, of MySQL a number. Its words are those of the file "words".
error_server() {
    cat >"$T/server.py" <<'END'
import socket
import struct
import sys

with socket.create_server(("127.0.0.1", 0)) as listening:
    print(listening.getsockname()[1], flush=True)
    while True:
        client = listening.accept()[0]
        state = open(sys.argv[2]).read().strip()
        words = open(sys.argv[3]).read().strip()
        try:
            if sys.argv[1] == "mysql":
                number, _, option = state.partition("+")
                text = b"\xff" + struct.pack("<H", int(number)) + (words + option).encode()
                client.sendall(struct.pack("<I", len(text))[:3] + b"\0" + text)
            else:
                client.recv(10000)
                fields = "SВАЖНО", "VFATAL", "C" + state, "M" + words, ""
                text = "\0".join(fields).encode() + b"\0"
                client.sendall(b"E" + (len(text) + 4).to_bytes(4, "big") + text)
        except OSError:
            pass
        client.close()
        print("asked", flush=True)
END
    echo 'raw words of the server' >"$T/words"
    bg_prints server python3 "$T/server.py" "$DATABASE" "$T/error" "$T/words"
}

# STATUS PostgreSQL MySQL WORDS
ERRORS='77 28P01 1045 user u: wrong password, or no such user
77 28000 1130 user u: no right to log in from here
77 42501 1044 user u: no right to the database, or to its tables
69 3D000 1049 user u: the server has no such database
69 53300 1040 user u: too many clients
69 53100 1021 its disk is full, and it takes no writes
69 53200 1037 out of memory
69 57P03 1047 it starts up, recovers or shuts down, and does not serve now
69 57P03 9001 it starts up, recovers or shuts down, and does not serve now
69 57P01 1053 the server has ended the connection
69 25006 1290+--super-read-only read-only; locks live on the primary
69 XX000 1105 user u: it answers with an error: raw words of the server
69 XX000 1290 user u: it answers with an error: raw words of the server'

@test "a server refuses: in plain words, with its address and user, and in its own words with -v" {
    each_database
    echo XX000 >"$T/error"
    error_server
    url=$DATABASE://u:p@127.0.0.1:$(head -n 1 "$T/server.out")/locks
    while read -r code state number words; do
        [[ $DATABASE == postgresql ]] || state=$number
        echo "$state" >"$T/error"
        run "-$code" --separate-stderr rlock run -n --server-wait 0 -u "$url" k -- \
            touch "$T/ran"
        stderr_line "^rlock: k: .*127.0.0.1:[0-9]*/locks: $words\$"
        [[ $words == *raw* || $stderr != *raw* ]]
        run "-$code" --separate-stderr rlock run -v -n --server-wait 0 -u "$url" k -- \
            touch "$T/ran"
        stderr_line 'the server said: raw words of the server'
    done <<<"$ERRORS"
    # Nothing is cut by rlock; the library of MariaDB keeps 511 bytes.
    [[ $DATABASE == postgresql ]] && words=$(printf '%02000d' 7) || words=$(printf '%0500d' 7)
    echo "$words" >"$T/words"
    [[ $DATABASE == postgresql ]] && echo XX000 >"$T/error" || echo 1105 >"$T/error"
    says 69 "it answers with an error: $words\$" run -n --server-wait 0 -u "$url" k -- \
        touch "$T/ran"
    # A wrong password is not tried again.
    [[ $DATABASE == postgresql ]] && echo 28P01 >"$T/error" || echo 1045 >"$T/error"
    number=$(grep -c asked "$T/server.out")
    refused 77 run -u "$url" k -- touch "$T/ran"
    [[ $(grep -c asked "$T/server.out") == $((number + 1)) && ! -e $T/ran ]]
    kill "${pid[server]}"
}

@test "H9 MySQL: a server that has no thread left for one more client is waited for" {
    with_database mysql
    echo 1135 >"$T/error"
    error_server
    url=mysql://u:p@127.0.0.1:$(head -n 1 "$T/server.out")/locks
    bg a rlock run --server-wait 60s -u "$url" k -- touch "$T/ran"
    poll_until 20 contains "$T/a.err" 'raw words of the server; trying again'
    echo 1045 >"$T/error"
    ends_with a 77 30
    kill "${pid[server]}"
    [[ ! -e $T/ran ]]
}

# The server has not proved its name then, and the library says so in other words.
@test "MySQL: what a server refuses before TLS begins is understood as without TLS" {
    with_database mysql
    echo 1040 >"$T/error"
    error_server
    url=mysqls://u:p@127.0.0.1:$(head -n 1 "$T/server.out")/locks
    says 69 'user u: too many clients$' run -n --server-wait 0 -u "$url" k -- touch "$T/ran"
    echo 1130 >"$T/error"
    says 77 'user u: no right to log in from here$' run -u "$url" k -- touch "$T/ran"
    kill "${pid[server]}"
    [[ ! -e $T/ran ]]
}
