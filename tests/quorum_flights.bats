# An answer of one server of a quorum that is lost, whichever it is.

load helper
load quorums
load flights

setup_file() { quorum_file 3; }

each_node() { printf 'redis://127.0.0.1:%s ' "$@" | sed 's/ redis/ -u redis/g'; }

@test "H141 an answer of a quorum's server that is lost: it runs once, and the lock is free" {
    each_flight "$QUORUM/1/sock,$QUORUM/2/sock,$QUORUM/3/sock" each_node
}
