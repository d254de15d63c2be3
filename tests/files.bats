# Files that options name: read to their end, in time, and before anything else is done. pieces
# OPTION: its content, from a slow writer.

load helper
load certificates

# A server that asks for all of them: a password, a certificate, an authority of its own.
setup_file() {
    export REDISCLI_AUTH=s3cret
    start_tls_file --requirepass s3cret --tls-auth-clients yes
    certificate client ca extendedKeyUsage=clientAuth
}

setup() {
    start_test
    # The writers of pipes pause, and may get no turn: a request has more than 5 s.
    export RLOCK_URL=rediss://127.0.0.1:$TLS_PORT RLOCK_SERVER_WAIT=1m
    unset RLOCK_CONFIG
    install -m 600 <(echo s3cret) "$T/password"
    printf '%s\n' "tls-ca = $CERTS/ca.pem" "tls-cert = $CERTS/client.pem" \
        "tls-key = $CERTS/client.key" \
        'password = s3cret' >"$T/config"
    chmod 600 "$T/config"
}

content() { # OPTION: a file for it
    case $1 in
    config) printf '# settings\nprefix = rlock\n' ;;
    password-file) echo s3cret ;;
    tls-ca) cat "$CERTS/ca.pem" ;;
    tls-cert) cat "$CERTS/client.pem" ;;
    tls-key) cat "$CERTS/client.key" ;;
    esac
}

# pieces OPTION: its content, from a slow writer.
pieces() {
    local text third
    text=$(content "$1")
    third=$((${#text} / 3))
    printf %s "${text:0:third}"
    sleep 0.05
    printf %s "${text:third:third}"
    sleep 0.05
    printf '%s\n' "${text:2 * third}"
}

# Each subcommand that asks a store, one a line; setup_commands prepares locks and latches.
commands() {
    printf '%s\n' 'run k -- true' 'read k -- true' 'write k -- true' 'acquire other' \
        'acquire --keep KEEPER kept' \
        'status' 'status held' 'renew --owner TOKEN held' 'release --owner TOKEN held' \
        'force-release --now --yes taken' \
        'latch set new 1' 'latch count-down counted' 'latch run ran -- true' 'latch wait open' \
        'latch status open' \
        'latch delete open' 'doctor' 'init'
}

setup_commands() {
    local latch
    export RLOCK_CONFIG=$T/config
    token=$(rlock acquire held)
    rlock acquire taken
    for latch in counted ran open; do
        rlock latch set "$latch" 1
    done
    rlock latch count-down open
    unset RLOCK_CONFIG
}

@test "H131 each file option of each subcommand reads a pipe to its end" {
    local line words token keeper=$BASHPID
    setup_commands
    while read -r line; do
        echo "--- $line"
        line=${line/KEEPER/$keeper}
        read -ra words <<<"${line/TOKEN/$token}"
        run --separate-stderr rlock "${words[0]}" --config <(pieces config) \
            --password-file <(pieces password-file) \
            --tls-ca <(pieces tls-ca) --tls-cert <(pieces tls-cert) --tls-key <(pieces tls-key) \
            "${words[@]:1}"
        printf '%s\n' "$status" "$stderr"
        # The doctor has something to say about a server that keeps no data.
        [[ $status == 0 || (${words[0]} == doctor && $status == 1) ]]
        [[ -z $stderr || ${words[0]} == force-release ]] # which shows whom it takes it from
    done < <(commands)
}

# First a run reads both from one pipe. Then a holder reads its settings from a pipe, as it can only
# once: they name the files of certificate and key, which its second connection needs as well.
@test "H131 certificate and key come from one pipe, and serve when a holder connects again" {
    both() { cat "$CERTS/client.pem" "$CERTS/client.key"; }
    run -0 rlock run --password-file <(pieces password-file) --tls-ca <(pieces tls-ca) \
        --tls-cert <(both) k -- true
    hold a k --lease 20s --config <(cat "$T/config")
    (($(redis client kill type normal skipme yes) >= 1))
    poll_until 15 eval 'redis client list | grep -q ":$TLS_PORT "' # over TLS
    terminate a 143
    RLOCK_CONFIG=$T/config run -0 rlock status -q k
}

@test "H131 a FIFO without a writer is an error after 10 s, for every file option" {
    mkfifo "$T/fifo"
    start=$(now_ms)
    for option in config password-file tls-ca tls-cert tls-key; do
        bg "$option" rlock run --config "$T/config" "--$option" "$T/fifo" k -- touch "$T/run"
        [[ $option != config ]] || continue
        # A file sets the option, with a password and a CA besides, and the certificate of a key.
        {
            echo "$option = fifo"
            [[ $option == password-file ]] || echo "password = s3cret"
            [[ $option == tls-ca ]] || echo "tls-ca = $CERTS/ca.pem"
            [[ $option != tls-key ]] || echo "tls-cert = $CERTS/client.pem"
        } >"$T/$option.config"
        chmod 600 "$T/$option.config"
        bg "of-$option" rlock status --config "$T/$option.config"
    done
    bg variable env RLOCK_CONFIG="$T/fifo" rlock status
    for option in config password-file tls-ca tls-cert tls-key; do
        finish "$option" 40
        echo "$option: $status" "$(<"$T/$option.err")"
        [[ $status == 64 ]]
        grep -qE "^rlock: run: --$option '?$T/fifo.*no process has opened this FIFO for writing within 10 s\$" "$T/$option.err"
        [[ $option != config ]] || continue
        ends_with "of-$option" 78 40
        grep -qE "^rlock: status: $T/$option.config:1: $option '$T/fifo'.*no process has opened this FIFO" "$T/of-$option.err"
    done
    ends_with variable 78 40
    grep -q "^rlock: status: RLOCK_CONFIG $T/fifo: no process has opened this FIFO" "$T/variable.err"
    [[ ! -e $T/run && $(now_ms) -ge $((start + 10000)) ]]
}

@test "H131 a FIFO is read when its writer comes; one whose writer says nothing is an error" {
    mkfifo "$T/fifo"
    bg a rlock run --config "$T/config" --password-file "$T/fifo" k -- true
    bg late sh -c "sleep 0.3; echo s3cret >'$T/fifo'"
    finish a 30
    [[ $status == 0 && ! -s $T/a.err ]]
    bg b rlock run --config "$T/config" --password-file "$T/fifo" k -- true
    bg silent sh -c ": >'$T/fifo'"
    ends_with b 64 30
    grep -q "first line is empty" "$T/b.err"
}

@test "H131 waiting for a FIFO ends by a signal" {
    mkfifo "$T/fifo"
    for signal in INT TERM HUP; do
        bg a rlock acquire --config "$T/config" --password-file "$T/fifo" k
        poll_until 10 eval 'readlink "/proc/${pid[a]}"/fd/* | grep -q fifo'
        kill -"$signal" "${pid[a]}"
        finish a
        [[ $status == $((128 + $(kill -l "$signal"))) ]]
    done
}

@test "H131 a password file is its first line, whatever its end is" {
    long=$(printf 'x%.0s' {1..1024})
    good() { run -0 rlock status --config "$T/config" "$@"; }
    printf 's3cret' >"$T/bare"
    printf 's3cret\r\n' >"$T/dos"
    printf 's3cret\nmore\n' >"$T/more"
    { echo s3cret && head -c 3000000 /dev/zero; } >"$T/big"
    chmod 600 "$T"/{bare,dos,more,big}
    for name in bare dos more big; do
        good --password-file "$T/$name"
        good --password-file <(cat "$T/$name" 2>/dev/null)
    done
    redis config set requirepass "$long"
    REDISCLI_AUTH=$long
    install -m 600 <(echo "$long") "$T/long"
    good --password-file "$T/long"
    good --password-file <(printf %s "${long:0:500}" && sleep 0.1 && echo "${long:500}")
    bad() { # REGEX FILE
        run -64 --separate-stderr rlock status --config "$T/config" --password-file "$2"
        stderr_line "^rlock: status: --password-file '$2' cannot be read: $1"
    }
    echo "x$long" >"$T/longer"
    bad 'its first line is longer than 1024 bytes' "$T/longer"
    bad 'its first line is longer than 1024 bytes' /dev/zero
    printf 's3cret\0' >"$T/nul"
    bad 'its first line has a NUL byte' "$T/nul"
    printf '\ns3cret\n' >"$T/second"
    bad 'its first line is empty' "$T/second"
    bad 'its first line is empty' /dev/null
    bad 'Is a directory' "$T"
    bad 'No such file' "$T/none"
}

@test "H131 a password from standard input is its first line; the command reads the rest" {
    run -0 bash -c 'printf "s3cret\nfor the command\n" | rlock run --config "$0" --password-file /dev/stdin k -- cat' "$T/config" 3>&-
    [[ $output == "for the command" ]]
}

@test "H131 a pipe that has no configuration left is an error, and not the default" {
    run -64 --separate-stderr rlock status --config <(true)
    stderr_line '^rlock: status: --config /dev/fd/[0-9]+: the pipe is empty'
    # The second one finds what the first one has left.
    run -78 --separate-stderr bash -c 'exec 5< <(cat "$0"); export RLOCK_CONFIG=/dev/fd/5
        rlock run k -- rlock run k -- true' "$T/config" 3>&-
    stderr_line '^rlock: run: RLOCK_CONFIG /dev/fd/5: the pipe is empty'
}

@test "H131 files that are too long are refused" {
    run -64 --separate-stderr rlock status --config "$T/config" --tls-ca /dev/zero
    stderr_line "^rlock: status: --tls-ca '/dev/zero' cannot be read: it is longer than 8388608 bytes"
    { cat "$T/config"; head -c 70000 /dev/zero | tr '\0' '#'; } >"$T/large"
    run -78 --separate-stderr rlock status --config "$T/large"
    stderr_line "^rlock: status: --config $T/large: it is longer than 65536 bytes"
}

@test "H131 a password from a pipe that is refused: no second reading, no hang" {
    run -77 --separate-stderr rlock run --config "$T/config" --password-file <(echo wrong) k -- \
        touch "$T/run"
    stderr_line '^rlock: k: rediss:'
    run ! grep -E 'fd/|No such file|FIFO' <<<"$stderr"
    # Nor where it is changed while the lock is held.
    hold a k --config "$T/config" --password-file <(echo s3cret) --lease 4s
    redis config set requirepass changed
    REDISCLI_AUTH=changed redis client kill type normal skipme yes
    ends_with a 79 30
    run ! grep -E 'fd/|No such file|FIFO' "$T/a.err"
    # A FIFO in place of a file is not waited for: the lock is kept as far as its lease.
    REDISCLI_AUTH=changed redis config set requirepass s3cret
    hold b other --config "$T/config" --password-file "$T/password" --lease 4s
    rm "$T/password"
    mkfifo "$T/password"
    redis config set requirepass changed
    REDISCLI_AUTH=changed redis client kill type normal skipme yes
    ends_with b 79 30
}
