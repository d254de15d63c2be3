# Encrypted connections: trusted servers, and the messages about others. And forms of an address:
# each is the server that it names, and never one at a default place. no_connection REGEX OPTION...:
# one attempt, which runs no command and says why. all_commands: each command that asks a store for
# a lock or a latch.

load helper
load certificates
load decisions

setup_file() {
    start_tls_file --bind '127.0.0.1 -::1'
    authority other
    certificate middle ca basicConstraints=critical,CA:TRUE
    certificate expired ca subjectAltName=DNS:localhost,IP:127.0.0.1 -days 0
    certificate elsewhere ca subjectAltName=DNS:elsewhere.test,IP:127.0.0.9
    certificate named ca subjectAltName=DNS:localhost
    certificate wild ca "subjectAltName=DNS:*.elsewhere.test,DNS:loc*"
    certificate below middle subjectAltName=DNS:localhost,IP:127.0.0.1
    certificate client ca extendedKeyUsage=clientAuth
    certificate stranger other extendedKeyUsage=clientAuth
    openssl ec -in "$CERTS/client.key" -aes128 -passout pass:x \
        -out "$CERTS/locked.key" 2>"$CERTS/log"
    cat "$CERTS/client.pem" "$CERTS/client.key" >"$CERTS/both.pem"
    openssl req -x509 "${new_key[@]}" -keyout "$CERTS/self.key" -out "$CERTS/self.pem" -days 2 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>"$CERTS/log"
}

setup() {
    start_test
    ca=(--tls-ca "$CERTS/ca.pem")
    export RLOCK_URL=rediss://127.0.0.1:$TLS_PORT
}

# no_connection REGEX [OPTION...]: and no command; one attempt says why, and does not take long.
no_connection() {
    timed 0 8000 says 69 "^rlock: k: cannot reach redis.*$1" run --server-wait 0 "${@:2}" k -- \
        touch "$T/run"
    [[ ! -e $T/run ]]
}

@test "a server that is vouched for, by name and by address" {
    for url in "rediss://127.0.0.1:$TLS_PORT" "valkeys://localhost:$TLS_PORT/0"; do
        run -7 rlock run -u "$url" "${ca[@]}" k -- sh -c 'exit 7'
    done
    run -0 rlock run --tls-server-name localhost. "${ca[@]}" k -- true
    echo "tls-ca = $CERTS/ca.pem" >"$T/config"
    RLOCK_CONFIG=$T/config run -0 rlock run k -- true
    SSL_CERT_FILE=$CERTS/ca.pem run -0 rlock run k -- true
    mkdir "$T/cas"
    cp "$CERTS/ca.pem" "$T/cas/"
    openssl rehash "$T/cas" 2>/dev/null || c_rehash "$T/cas"
    prints_nothing 0 run --tls-ca "$T/cas" k -- true
}

@test "what the system trusts: its directory first, its bundle where that is not enough" {
    local url=rediss://localhost:$TLS_PORT
    mkdir "$T/cas"
    cp "$CERTS/ca.pem" "$T/cas/"
    openssl rehash "$T/cas" 2>/dev/null || c_rehash "$T/cas"
    # Opening it would wait for a writer.
    mkfifo "$T/bundle"
    export SSL_CERT_DIR=$T/cas SSL_CERT_FILE=$T/bundle
    run -0 rlock run --connect-timeout 10s k -- true
    SSL_CERT_FILE=/nonexistent run -0 rlock run k -- true
    export SSL_CERT_DIR=$T/nonexistent
    SSL_CERT_FILE=$CERTS/ca.pem run -0 rlock run k -- true
    SSL_CERT_FILE=$CERTS/ca.pem run -0 rlock run -u "$url" k -- true
    # TLS 1.2 is spoken from here on.
    redis config set tls-protocols TLSv1.2
    SSL_CERT_FILE=$CERTS/ca.pem run -0 rlock run k -- true
    # Another authority of the same name does not hide the one that is meant.
    openssl req -x509 "${new_key[@]}" -keyout "$T/key" -out "$T/twin.pem" -days 2 \
        -subj "/CN=authority ca" \
        -addext basicConstraints=critical,CA:TRUE 2>/dev/null
    mkdir "$T/twins"
    cp "$T/twin.pem" "$T/twins/"
    openssl rehash "$T/twins" 2>/dev/null || c_rehash "$T/twins"
    SSL_CERT_DIR=$T/twins SSL_CERT_FILE=$CERTS/ca.pem run -0 rlock run k -- true
    export SSL_CERT_FILE=$CERTS/other.pem
    no_connection 'not trusted'
    # OpenSSL may find no issuer, or take the twin for it, and find the signature wrong.
    SSL_CERT_DIR=$T/twins no_connection 'not trusted|refused'
    # Trusted, and for another host.
    server_certificate elsewhere
    SSL_CERT_FILE=$CERTS/ca.pem no_connection 'is not for 127\.0\.0\.1'
}

@test "every command speaks TLS" {
    all_commands "${ca[@]}"
}

@test "OpenSSL is loaded where it is needed, and nowhere else" {
    loaded() {
        grep -q libssl "/proc/$1/maps"
    }
    hold a k "${ca[@]}"
    loaded "$(agent_of "${pid[a]}")"
    run ! loaded "${pid[a]}"
    RLOCK_URL=unix://$REDIS_SOCK hold b other
    run ! loaded "$(agent_of "${pid[b]}")"
    run ! loaded "${pid[b]}"
}

@test "a certificate without a trusted issuer is refused" {
    no_connection 'not trusted: .*see tls-ca'
    no_connection 'not trusted: .*see tls-ca' --tls-ca "$CERTS/other.pem"
    server_certificate self
    no_connection 'not trusted: .*see tls-ca' "${ca[@]}"
    # The certificate's maker may be the one that is trusted.
    run -0 rlock run --tls-ca "$CERTS/self.pem" k -- true
}

@test "a certificate in --tls-ca is trusted, also if it is not a root" {
    server_certificate below
    no_connection 'not trusted' "${ca[@]}"
    run -0 rlock run --tls-ca "$CERTS/middle.pem" k -- true
    cat "$CERTS/below.pem" "$CERTS/middle.pem" >"$T/chain.pem"
    redis config set tls-cert-file "$T/chain.pem" tls-key-file "$CERTS/below.key"
    run -0 rlock run "${ca[@]}" k -- true
    no_connection 'not trusted' --tls-ca "$CERTS/other.pem"
}

@test "--tls-ca of an empty directory, or of others: what the system trusts does not count" {
    mkdir "$T/empty"
    no_connection 'not trusted' --tls-ca "$T/empty"
    # The certificates that the system trusts do not replace it.
    SSL_CERT_FILE=$CERTS/ca.pem no_connection 'not trusted' --tls-ca "$T/empty"
    SSL_CERT_FILE=$CERTS/ca.pem no_connection 'not trusted' --tls-ca "$CERTS/other.pem"
}

@test "H129 a damaged file of certificates is found before a connection is made" {
    printf -- '-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n' >"$T/nonsense"
    sed '5s/./_/g' "$CERTS/ca.pem" >"$T/line"
    head -n 5 "$CERTS/ca.pem" >"$T/cut"
    cat "$CERTS/ca.pem" "$T/nonsense" >"$T/second"
    for name in nonsense line cut second; do
        refused 64 run --tls-ca "$T/$name" k -- touch "$T/run"
        stderr_line "^rlock: k: --tls-ca $T/$name: a certificate in it is damaged"
        echo "tls-ca = $T/$name" >"$T/config"
        SSL_CERT_FILE=$CERTS/ca.pem run -78 --separate-stderr rlock status --config "$T/config"
        stderr_line "^rlock: status: $T/config:1: tls-ca $T/$name: a certificate in it is damaged"
    done
    for name in nonsense line cut; do
        says 64 "^rlock: k: --tls-cert $T/$name: a certificate in it is damaged" run "${ca[@]}" \
            --tls-cert "$T/$name" --tls-key "$CERTS/client.key" k -- true
        says 64 "^rlock: k: --tls-key $T/$name: no private key" run "${ca[@]}" \
            --tls-cert "$CERTS/client.pem" --tls-key "$T/$name" k -- true
    done
    cat "$CERTS/client.pem" "$T/nonsense" "$CERTS/client.key" >"$T/both"
    run -64 --separate-stderr rlock run "${ca[@]}" --tls-cert "$T/both" k -- true
    stderr_line "^rlock: k: --tls-cert $T/both: .* behind the first one"
    # Each by where it was set, whatever else is on the command line.
    printf 'tls-ca = %s\ntls-cert = %s\n' "$CERTS/ca.pem" "$CERTS/client.key" >"$T/config"
    run -78 --separate-stderr rlock run -u "$RLOCK_URL" "${ca[@]}" --config "$T/config" k -- true
    stderr_line "^rlock: k: $T/config:2: tls-cert $CERTS/client.key: no certificate can be read"
}

@test "H129 a --tls-server-name that no certificate can be for is refused" {
    server_certificate elsewhere
    for name in . % '%x' .. .elsewhere.test elsewhere..test '*' '*.test' '127.0.0.1%lo' '[::1]' \
        'a b' -a \
        "$(printf 'x%.0s' {1..64})" 'https://elsewhere.test'; do
        run -64 --separate-stderr rlock run "${ca[@]}" --tls-server-name "$name" k -- touch "$T/run"
        stderr_line "^rlock: run: --tls-server-name '.*' is neither the name nor the address of a host"
        echo "tls-server-name = $name" >"$T/config"
        run -78 --separate-stderr rlock status --config "$T/config"
        stderr_line "^rlock: status: $T/config:1: tls-server-name '.*' is neither"
    done
    run -64 --separate-stderr rlock run "${ca[@]}" --tls-server-name '' k -- touch "$T/run"
    stderr_line "^rlock: run: --tls-server-name '' is empty"
    for name in . .. '[::1::2]'; do
        run --separate-stderr rlock run "${ca[@]}" -u "rediss://$name:$TLS_PORT" k -- touch "$T/run"
        [[ $status == 64 || $status == 69 ]]
    done
    [[ ! -e $T/run ]]
}

@test "H129 a certificate that names its host only in its subject is refused, and it says why" {
    for name in localhost 127.0.0.1; do
        openssl req -x509 "${new_key[@]}" -keyout "$CERTS/cn.key" -out "$CERTS/cn.pem" -days 2 \
            -subj "/CN=$name" 2>/dev/null
        server_certificate cn
        no_connection "names $name only in its subject \\(CN\\).* takes a subjectAltName" \
            --tls-ca "$CERTS/cn.pem" \
            -u "rediss://$name:$TLS_PORT"
        no_connection "is not for elsewhere\.test" --tls-ca "$CERTS/cn.pem" \
            --tls-server-name elsewhere.test
    done
    # Beside a subjectAltName it never counted.
    certificate localhost ca subjectAltName=DNS:elsewhere.test
    server_certificate localhost
    no_connection 'is not for localhost' "${ca[@]}" -u "rediss://localhost:$TLS_PORT"
}

@test "an expired certificate, and one that is not for servers, are refused" {
    server_certificate expired
    no_connection 'refused: certificate has expired' "${ca[@]}"
    server_certificate client
    no_connection 'refused: .*purpose' "${ca[@]}"
}

@test "a certificate for another host is refused, unless that one is asked for" {
    server_certificate elsewhere
    no_connection 'is not for 127\.0\.0\.1' "${ca[@]}"
    no_connection 'is not for localhost' "${ca[@]}" -u "rediss://localhost:$TLS_PORT"
    no_connection 'is not for wrong\.test' "${ca[@]}" --tls-server-name wrong.test
    run -0 rlock run "${ca[@]}" --tls-server-name elsewhere.test k -- true
    run -0 rlock run "${ca[@]}" --tls-server-name 127.0.0.9 k -- true
    server_certificate named
    no_connection 'is not for 127\.0\.0\.1' "${ca[@]}"
    run -0 rlock run "${ca[@]}" -u "rediss://localhost:$TLS_PORT" k -- true
    server_certificate wild
    run -0 rlock run "${ca[@]}" --tls-server-name x.elsewhere.test k -- true
    no_connection 'is not for elsewhere\.test' "${ca[@]}" --tls-server-name elsewhere.test
    no_connection 'is not for x\.y\.elsewhere' "${ca[@]}" --tls-server-name x.y.elsewhere.test
    no_connection 'is not for localhost' "${ca[@]}" --tls-server-name localhost
}

@test "a server that asks for a certificate gets the one that is configured" {
    redis config set tls-auth-clients yes
    for version in TLSv1.3 TLSv1.2; do
        redis config set tls-protocols $version
        no_connection 'asked for a certificate \(see tls-cert\)' "${ca[@]}"
        no_connection 'may not like ours' "${ca[@]}" --tls-cert "$CERTS/stranger.pem" \
            --tls-key "$CERTS/stranger.key"
        run -0 rlock run "${ca[@]}" --tls-cert "$CERTS/client.pem" --tls-key "$CERTS/client.key" \
            k -- true
        run -0 rlock run "${ca[@]}" --tls-cert "$CERTS/both.pem" k -- true
    done
    printf 'tls-ca=%s\ntls-cert=%s\ntls-key=%s\n' "$CERTS"/{ca.pem,client.pem,client.key} \
        >"$T/config"
    RLOCK_CONFIG=$T/config run -0 rlock run k -- true
}

@test "H20 over TLS, with certificate and password, the rights of the manual are enough" {
    redis config set tls-auth-clients yes
    limited_user
    install -m 600 <(echo pw) "$T/password"
    printf 'tls-ca=%s\ntls-cert=%s\ntls-key=%s\npassword-file=%s\n' \
        "$CERTS"/{ca.pem,client.pem,client.key} "$T/password" >"$T/config"
    export RLOCK_CONFIG=$T/config
    refuse() { # OPTION...
        refused 77 run "$@" k -- touch "$T/run"
    }
    refuse -u "rediss://limited:no@127.0.0.1:$TLS_PORT"
    stderr_line '^rlock: k: rediss://127.0.0.1:[0-9]+/0: user limited: wrong password, or no such user$'
    export RLOCK_URL=rediss://limited:@127.0.0.1:$TLS_PORT
    refuse --prefix other
    hold a k --lease 9s
    queue w k
    run -0 rlock force-release --now --yes k
    ends_with w 0
    run -1 grep -v 'waiting for k\|acquired after' "$T/w.err"
    ends_with a 79
}

@test "TLS 1.2 and 1.3 are spoken, and nothing older" {
    for version in TLSv1.2 TLSv1.3 'TLSv1.2 TLSv1.3'; do
        redis config set tls-protocols "$version"
        run -0 rlock run "${ca[@]}" k -- true
    done
    redis config set tls-protocols TLSv1.1
    no_connection 'protocol version' "${ca[@]}"
}

@test "files that make no sense: 64 from the command line, 78 from a config file, and no prompt" {
    bad() { # REGEX OPTION...
        says 64 "^rlock: .*$1" run "${@:2}" k -- touch "$T/run"
        says 64 "^rlock: status: .*$1" status "${@:2}"
    }
    bad "--tls-ca '$T/none' cannot be read: No such file" --tls-ca "$T/none"
    bad "--tls-cert '$T/none' cannot be read" "${ca[@]}" --tls-cert "$T/none"
    bad "--tls-ca '' is empty" --tls-ca ''
    bad "$CERTS/server.key: no certificates to trust" --tls-ca "$CERTS/server.key"
    bad "$CERTS/client.key: no certificate " "${ca[@]}" --tls-cert "$CERTS/client.key"
    bad "$CERTS/client.pem: no private key" "${ca[@]}" --tls-cert "$CERTS/client.pem"
    bad "$CERTS/ca.key: the private key is not that of the certificate" "${ca[@]}" \
        --tls-cert "$CERTS/client.pem" --tls-key "$CERTS/ca.key"
    bad "$CERTS/locked.key: .*passphrase" "${ca[@]}" \
        --tls-cert "$CERTS/client.pem" --tls-key "$CERTS/locked.key"
    bad "--tls-key .* requires tls-cert" "${ca[@]}" --tls-key "$CERTS/client.key"
    printf 'url = %s\ntls-ca = %s\n' "$RLOCK_URL" "$CERTS/server.key" >"$T/config"
    unset RLOCK_URL
    refused 78 run --config "$T/config" k -- touch "$T/run"
    run -78 rlock acquire --config "$T/config" k
    run -78 rlock force-release --now --yes --config "$T/config" k
    run -78 rlock release --owner $NO_OWNER --config "$T/config" k
    run -78 rlock latch status --config "$T/config" k
}

@test "a key with a passphrase asks for nothing on a terminal" {
    on_terminal rlock run "${ca[@]}" --tls-cert "$CERTS/client.pem" \
        --tls-key "$CERTS/locked.key" k -- true 3>&- <<'EOF'
expect a private key with a passphrase is not supported
absent (?i)enter
status 64
EOF
}

@test "options about TLS are refused where there is none, and defaults from below are not" {
    for url in "redis://127.0.0.1:$PLAIN_PORT" "unix://$REDIS_SOCK"; do
        for option in ca cert key server-name; do
            value=$CERTS/ca.pem
            [[ $option != server-name ]] || value=elsewhere.test
            run -64 --separate-stderr rlock run -u "$url" "--tls-$option" "$value" k -- true
            stderr_line "--tls-$option .* needs TLS, but $url.*rediss://"
        done
        printf 'url = %s\ntls-ca = %s\n' "$url" "$CERTS/ca.pem" >"$T/config"
        RLOCK_URL='' run -78 --separate-stderr rlock run --config "$T/config" k -- true
        stderr_line "^rlock: run: $T/config:2: tls-ca .* needs TLS"
        # Said of another URL: a default for those with TLS.
        run -0 rlock run --config "$T/config" -u "$url" k -- true
        RLOCK_URL=$url run -0 rlock run --config "$T/config" k -- true
    done
    run -0 rlock run --config "$T/config" k -- true
}

@test "rediss:// to a server without TLS, and redis:// to one with it: exit 69, and it says so" {
    no_connection 'no answer to TLS in time; is it a server without' "${ca[@]}" \
        -u "rediss://127.0.0.1:$PLAIN_PORT" --connect-timeout 3s
    stderr_line '^hint: without TLS the URL begins with redis://'
    no_connection 'is it a server with TLS, or a proxy' -u "redis://127.0.0.1:$TLS_PORT"
    stderr_line '^hint: with TLS the URL begins with rediss://'
    # Servers that answer: something else, and an alert.
    local port
    answering web 'HTTP/1.1 400 Bad Request\r\n\r\n'
    no_connection 'TLS: the server there does not speak it' "${ca[@]}" -u "rediss://127.0.0.1:$port"
    stderr_line '^hint: without TLS the URL begins with redis://'
    no_connection 'not a Redis server' -u "redis://127.0.0.1:$port"
    answering alert '\x15\x03\x01\x00\x02\x02\x0a'
    no_connection 'TLS: the server says: unexpected' "${ca[@]}" -u "rediss://127.0.0.1:$port"
    no_connection 'what answers there speaks TLS' -u "redis://127.0.0.1:$port"
    stderr_line '^hint: with TLS the URL begins with rediss://'
}

# foresees HOURS REGEX [OPTION...]: so much later, a connection relies on a certificate that ends.
foresees() {
    printf '%-32s' $((3600000 * $1)) 1<>"$SHIM_CLOCK_FILE"
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so run rlock doctor "${ca[@]}" "${@:3}"
    grep -F "  $2" <<<"$output" || { echo "$output" && false; }
}

@test "the doctor foresees the end of the certificates that a connection relies on" {
    local server="certificate  the server's certificate ends in"
    local authority="certificate  the certificate of its authority ends in"
    export SHIM_CLOCK_FILE=$T/clock
    truncate -s 4096 "$SHIM_CLOCK_FILE"
    certificate day ca subjectAltName=IP:127.0.0.1 -days 1
    certificate week ca subjectAltName=IP:127.0.0.1 -days 7
    server_certificate day
    foresees 0 "fine     $server"
    foresees 17 "fine     $server"
    foresees 19 "warning  $server"
    server_certificate week
    foresees 35 "fine     $authority"
    foresees 37 "warning  $authority"
    foresees 19 "warning  certificate  the certificate of tls-cert ends in" \
        --tls-cert "$CERTS/day.pem" --tls-key "$CERTS/day.key"
    # A certificate that lasts for long is warned of two weeks before its end.
    authority old -days 90
    certificate season old subjectAltName=IP:127.0.0.1 -days 90
    ca=(--tls-ca "$CERTS/old.pem")
    server_certificate season
    foresees $((24 * 75)) "fine     certificate"
    foresees $((24 * 77)) "warning  certificate"
    run rlock doctor -u "redis://127.0.0.1:$PLAIN_PORT"
    [[ $output == *"fine     encryption"* && $output != *certificate* ]]
}

# has_ipv6: this host has an address of IPv6.
has_ipv6() {
    [[ -s /proc/net/if_inet6 ]]
}

# reach URL...: each is the server that the Unix socket leads to, where k is held.
reach() {
    local url
    for url; do
        refused 75 run --server-wait 0 -n -u "$url" k -- touch "$T/ran"
        stderr_line '^rlock: k: not acquired: held by '
    done
    [[ ! -e $T/ran ]]
}

@test "H140 Redis: each form of an address is the server at that port" {
    export SSL_CERT_FILE=$CERTS/ca.pem
    hold a k
    reach "unix://$REDIS_SOCK" "redis://127.0.0.1:$PLAIN_PORT" "redis://localhost:$PLAIN_PORT" \
        "redis://localhost:$PLAIN_PORT/0" "rediss://127.0.0.1:$TLS_PORT" \
        "rediss://localhost:$TLS_PORT"
    ! has_ipv6 || reach "redis://[::1]:$PLAIN_PORT"
}

@test "localhost is this host where /etc/hosts does not say so" {
    export SHIM_DNS_BARE=1 LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_dns.so
    run -0 rlock run -u "redis://localhost:$PLAIN_PORT" k -- true
    run -0 rlock run -u "redis://redis.localhost:$PLAIN_PORT" k -- true
    refused 69 run --server-wait 0 -u "redis://mylocalhost:$PLAIN_PORT" k -- \
        touch "$T/ran"
}
