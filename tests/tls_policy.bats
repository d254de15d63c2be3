# The system's configuration of OpenSSL counts for rlock as for every other program. policy LINE...:
# the configuration that rlock finds; does_not_run STATUS REGEX: no command is run, and a message
# says so.

load helper
load certificates

setup_file() {
    start_tls_file
    authority other
}

setup() {
    start_test
    ca=(--tls-ca "$CERTS/ca.pem")
    export RLOCK_URL=rediss://127.0.0.1:$TLS_PORT
    POLICY=$T/openssl.cnf
}

# rlock only has the configuration; the server does not.
rlock() {
    OPENSSL_CONF=$POLICY timeout --foreground -k 5 50 "$RLOCK" "$@" 3>&-
}

# policy LINE...: the system's policy for every connection.
policy() {
    printf '%s\n' 'openssl_conf = init' '[init]' 'ssl_conf = ssl' '[ssl]' 'system_default = all' \
        '[all]' \
        "$@" >"$POLICY"
}

# does_not_run STATUS REGEX [OPTION...]: no command.
does_not_run() {
    run "-$1" --separate-stderr rlock run "${ca[@]}" "${@:3}" k -- touch "$T/run"
    stderr_line "$2"
    [[ ! -e $T/run ]]
}

@test "H129 the least version of TLS that the system asks for is kept to" {
    policy 'MinProtocol = TLSv1.2'
    redis config set tls-protocols TLSv1.2
    run -0 rlock run "${ca[@]}" k -- true
    policy 'MinProtocol = TLSv1.3'
    does_not_run 69 '^rlock: k: cannot reach rediss:.*TLS: .*protocol version'
    redis config set tls-protocols TLSv1.3
    run -0 rlock run "${ca[@]}" k -- true
    # A policy that allows less than TLS 1.2 does not make rlock speak it.
    policy 'MinProtocol = TLSv1' 'CipherString = DEFAULT:@SECLEVEL=0'
    redis config set tls-protocols TLSv1.1
    does_not_run 69 '^rlock: k: cannot reach rediss:.*TLS: '
    redis config set tls-protocols TLSv1.3
    policy 'MaxProtocol = TLSv1.1'
    does_not_run 78 "^rlock: k: TLS: OpenSSL's configuration $POLICY"
}

@test "H129 the ciphers and key lengths that the system asks for are kept to" {
    redis config set tls-protocols TLSv1.2
    policy 'CipherString = ECDHE-ECDSA-AES256-GCM-SHA384'
    run -0 rlock run "${ca[@]}" k -- true
    redis config set tls-ciphers ECDHE-ECDSA-AES128-GCM-SHA256
    does_not_run 69 '^rlock: k: cannot reach rediss:.*TLS: '
    redis config set tls-ciphers ''
    # 192 bits; the curve has 128.
    policy 'CipherString = DEFAULT:@SECLEVEL=4'
    does_not_run 69 '^rlock: k: cannot reach rediss:.*TLS: '
}

@test "H129 a server without a certificate is refused, whatever ciphers the system allows" {
    local port
    port=$(free_ports 1)
    policy 'CipherString = aNULL:ALL:@SECLEVEL=0'
    bg server openssl s_server -accept "$port" -nocert -cipher 'aNULL:@SECLEVEL=0' -tls1_2 -quiet
    poll_until 10 bash -c "exec 4<>/dev/tcp/127.0.0.1/$port"
    # The server can be spoken to in that way.
    run -0 openssl s_client -connect "127.0.0.1:$port" -cipher 'aNULL:@SECLEVEL=0' \
        -tls1_2 </dev/null
    does_not_run 69 'TLS: the server shows no certificate' -u "rediss://127.0.0.1:$port"
}

@test "H129 a configuration that makes no sense, or cannot be read, is an error and not left out" {
    broken() { # REGEX
        does_not_run 78 "^rlock: k: TLS: OpenSSL's configuration $POLICY: .*$1"
        says 78 "^rlock: status: TLS: OpenSSL's configuration" status "${ca[@]}"
        run -78 rlock acquire "${ca[@]}" k
        run -78 rlock doctor "${ca[@]}"
    }
    policy 'MinProtocol = TLSv9'
    broken system_default
    policy 'Nonsense = 1'
    broken system_default
    policy 'CipherString = NONSENSE'
    broken system_default
    echo '[init' >"$POLICY"
    broken ''
    printf 'openssl_conf = none\n' >"$POLICY"
    broken none
    # Only FIPS, without a provider that has it.
    printf '%s\n' 'openssl_conf = init' '[init]' 'alg_section = all' '[all]' \
        'default_properties = fips=yes' >"$POLICY"
    broken 'no TLS'
    # Something other than a file; none where one is named.
    rm "$POLICY"
    broken 'No such file'
    POLICY=$T broken 'Is a directory'
    # Nothing of this concerns whoever needs no TLS.
    run -0 rlock run -u "unix://$REDIS_SOCK" k -- true
    # Empty is none.
    POLICY='' run -0 rlock run "${ca[@]}" k -- true
}

@test "H129 what distributions write, and what is for servers, is understood" {
    # As Fedora has it, in its order.
    policy 'CipherString = @SECLEVEL=2:kEECDH:kRSA:kEDH:kPSK:kDHEPSK:kECDHEPSK:kRSAPSK:-aDSS:-3DES:!DES:!RC4:!RC2:!IDEA:-SEED:!eNULL:!aNULL:!MD5:-SHA384:-CAMELLIA:-ARIA:-AESCCM8' \
        'Ciphersuites = TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256' \
        'TLS.MinProtocol = TLSv1.2' 'TLS.MaxProtocol = TLSv1.3' \
        'DTLS.MinProtocol = DTLSv1.2' 'DTLS.MaxProtocol = DTLSv1.2' \
        'SignatureAlgorithms = ECDSA+SHA256:ECDSA+SHA384:RSA-PSS+SHA256:RSA+SHA256' \
        'Groups = X25519:secp256r1:secp384r1'
    quiet 0 run "${ca[@]}" k -- true
    policy 'Options = ServerPreference,-SessionTicket' 'NumTickets = 4' 'VerifyMode = Request' \
        'MinProtocol = None'
    run -0 rlock run "${ca[@]}" k -- true
    # VerifyMode is for servers: rlock verifies all the same.
    does_not_run 69 'not trusted' --tls-ca "$CERTS/other.pem"
    # As Debian has it, and a file without a line.
    OPENSSL_CONF='' openssl version -d | grep -o '/[^"]*' >"$T/where"
    POLICY=$(<"$T/where")/openssl.cnf
    [[ ! -e $POLICY ]] || run -0 rlock run "${ca[@]}" k -- true
    POLICY=$T/empty
    : >"$POLICY"
    run -0 rlock run "${ca[@]}" k -- true
}

@test "H129 a configuration that may not be read is an error" {
    [[ $EUID == 0 ]] || skip "takes root"
    policy 'MinProtocol = TLSv1.2'
    cp "$CERTS/ca.pem" "$T/"
    chown -R 65534 "$T"
    chown 0 "$POLICY"
    chmod 600 "$POLICY"
    chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$T"
    run -78 --separate-stderr env OPENSSL_CONF="$POLICY" setpriv --reuid 65534 \
        --clear-groups "$RLOCK" status --tls-ca "$T/ca.pem"
    stderr_line "^rlock: status: TLS: OpenSSL's configuration $POLICY: Permission denied"
}
