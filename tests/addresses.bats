# Forms of an address: each is the server that it names, and never one at a default place.

load helper
load certificates

setup_file() { start_tls_file --bind '127.0.0.1 -::1'; }

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
