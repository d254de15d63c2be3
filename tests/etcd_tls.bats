#!/usr/bin/env bats
# etcds://, with a member that wants certificates of its clients.
load helper
load certificates
load etcds

setup_file() {
    clean_environment
    export ETCD_SCHEME=https ETCDCTL_CACERT=$CERTS/ca.pem ETCDCTL_CERT=$CERTS/client.pem \
        ETCDCTL_KEY=$CERTS/client.key
    has_etcd || return 0
    authority ca
    authority other
    authority next
    cat "$CERTS/ca.pem" "$CERTS/next.pem" >"$CERTS/members.pem"
    certificate server ca subjectAltName=IP:127.0.0.1
    certificate client ca extendedKeyUsage=clientAuth
    certificate nameless ca extendedKeyUsage=clientAuth -subj /O=rlock
    certificate stranger other extendedKeyUsage=clientAuth
    etcd_start 1 --unsafe-no-fsync --cert-file "$CERTS/server.pem" --key-file "$CERTS/server.key" \
        --client-cert-auth --trusted-ca-file "$CERTS/members.pem" --bcrypt-cost 4
}

setup() {
    etcd_setup
    export RLOCK_CONFIG=$T/config
    printf 'tls-ca = %s\ntls-cert = %s\ntls-key = %s\n' "$CERTS/ca.pem" "$CERTS/client.pem" \
        "$CERTS/client.key" >"$RLOCK_CONFIG"
}

# no_lock WORDS OPTION...: no lock is granted with these options, for that reason.
no_lock() {
    run -69 rlock run --server-wait 0 "${@:2}" k -- touch "$T/ran"
    [[ $output == *"$1"* && ! -e $T/ran ]]
}

@test "the member's certificate and name are verified, and so is the client's" {
    run -0 rlock run k -- true
    run -0 rlock doctor
    [[ $output == *'fine     encryption   TLS'* ]]
    [[ $output == *'fine     certificate  the '*' ends in '* ]]
    no_lock 'SSL certificate problem' --tls-ca "$CERTS/other.pem"
    no_lock "'localhost'" -u "${RLOCK_URL/127.0.0.1/localhost}"
    no_lock 'cannot reach' -u "${RLOCK_URL/etcds/etcd}"
    no_lock 'cannot reach' --tls-cert "$CERTS/stranger.pem" --tls-key "$CERTS/stranger.key"
    echo "tls-ca = $CERTS/ca.pem" >"$RLOCK_CONFIG"
    no_lock 'cannot reach'
}

@test "a user's tokens end: a holder gets a new one without a word, and so does who waits" {
    ctl role add rlock
    ctl role grant-permission rlock readwrite --prefix=true "test$BATS_TEST_NUMBER/rlock:"
    ctl user add rlock:PASSWORD
    ctl user grant-role rlock rlock
    ctl user add root:secret
    ctl user grant-role root root
    ctl auth enable
    export RLOCK_URL=${RLOCK_URL/:\/\//:\/\/rlock@} RLOCK_PASSWORD=PASSWORD
    no_lock 'must have no CommonName'
    sed -i 's/client/nameless/' "$RLOCK_CONFIG"
    stay a k -v --lease 9s
    queue b k --lease 9s
    ctl --user root:secret user passwd rlock --interactive=false <<<PASSWORD
    renews a
    ends_well a
    ends_with b 0 30
    [[ $(cat "$T"/[ab].err) != *password* ]]
    ctl --user root:secret auth disable
}

# beside_system OPTION...: touches a file under a lock, where the system trusts the member.
beside_system() {
    unshare --mount sh -c 'mount --bind "$0" /etc/ssl/certs && exec "$@"' "$T/system" \
        "$RLOCK" run --server-wait 0 "$@" k -- touch "$T/ran" 3>&-
}

@test "the authorities that the system trusts count without --tls-ca, and not beside it" {
    unshare --mount mount --bind "$CERTS" /etc/ssl/certs 2>/dev/null || skip "may not mount there"
    mkdir "$T/system"
    cp "$CERTS/ca.pem" "$T/system/ca-certificates.crt"
    openssl rehash "$T/system"
    run -69 beside_system --tls-ca "$CERTS/other.pem"
    [[ $output == *'SSL certificate problem'* && ! -e $T/ran ]]
    sed -i /^tls-ca/d "$RLOCK_CONFIG"
    run -0 beside_system
    [[ -e $T/ran ]]
}

# The member trusts the other authority, too: its gateway is a client of its own, and shows it the
# same certificate. A connection that is made anew must not go by what libcurl had read before.
@test "the member has another certificate, then one of another authority: no lock is lost" {
    local name
    cp "$CERTS/ca.pem" "$T/trusted.pem"
    cp "$CERTS/server.pem" "$T/server.pem"
    cp "$CERTS/server.key" "$T/server.key"
    sed -i "s|^tls-ca.*|tls-ca = $T/trusted.pem|" "$RLOCK_CONFIG"
    certificate same ca subjectAltName=IP:127.0.0.1
    certificate foreign next subjectAltName=IP:127.0.0.1
    stay a k -v --lease 15s
    queue b k --lease 15s
    for name in same foreign; do
        member KILL 1
        cp "$CERTS/$name.key" "$CERTS/server.key"
        cp "$CERTS/$name.pem" "$CERTS/server.pem"
        [[ $name != foreign ]] || cp "$CERTS/next.pem" "$T/trusted.pem"
        member_start 1
        renews a
    done
    ends_well a
    ends_with b 0 30
    member KILL 1
    cp "$T/server.key" "$T/server.pem" "$CERTS"
    member_start 1
}
