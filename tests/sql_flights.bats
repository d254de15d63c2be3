# A database's answer that is lost, whichever it is: with and without TLS. "lost in_clear": each
# answer over such a connection is lost, one in each run.

load helper
load databases
load flights

setup_file() { databases_start; }

in_clear() { echo "$DATABASE://locker:p%20w@127.0.0.1:$1/locks"; }
in_tls() { echo "$(in_clear "$1" | sed "s/^$DATABASE/&s/") --tls-ca $CERTS/ca.pem"; }

lost() {
    each_flight "$(database_port "$DATABASE")" "$1"
}

@test "H141 an answer that is lost, whichever it is: it runs once, and the lock is free" {
    on_each lost in_clear
}

@test "H141 an answer that is lost over TLS, whichever it is: the command runs once" {
    on_each lost in_tls
}
