# An answer of Redis that is lost, whichever it is: with and without TLS.

load helper
load certificates
load flights

setup_file() { start_tls_file; }

in_clear() { echo "redis://127.0.0.1:$1"; }
in_tls() { echo "rediss://127.0.0.1:$1 --tls-ca $CERTS/ca.pem"; }

@test "H141 an answer of Redis that is lost, whichever it is: it runs once, and the lock is free" {
    each_flight "$PLAIN_PORT" in_clear
}

@test "H141 an answer of Redis that is lost over TLS, whichever it is: the command runs once" {
    each_flight "$TLS_PORT" in_tls
}
