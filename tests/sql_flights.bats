# A database's answer that is lost, whichever it is: with and without TLS. on_each FUNCTION
# [ARGUMENT...]: with each database; "lost in_clear": each answer over such a connection is lost,
# one in each run.

load helper
load databases
load flights

setup_file() { databases_start; }

# in_clear PORT, in_tls PORT: print the address of the database at that port, with the options for
# it.
in_clear() { echo "$DATABASE://locker:p%20w@127.0.0.1:$1/locks"; }
in_tls() { echo "$(in_clear "$1" | sed "s/^$DATABASE/&s/") --tls-ca $CERTS/ca.pem"; }

# lost in_clear|in_tls: each answer over such a connection is lost, one in each run (flights.bash).
lost() {
    each_flight "$(database_port "$DATABASE")" "$1"
}

@test "H141 an answer that is lost, whichever it is: it runs once, and the lock is free" {
    on_each lost in_clear
}

@test "H141 an answer that is lost over TLS, whichever it is: the command runs once" {
    on_each lost in_tls
}
