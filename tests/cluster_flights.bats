# An answer of a node of a Redis Cluster that is lost, whichever it is.

load helper
load cluster
load flights

by_seeds() {
    local seeds
    seeds=$(printf ',127.0.0.1:%s' "$@")
    echo "cluster://${seeds:1}"
}

@test "H141 an answer of a Cluster that is lost, whichever it is: it runs once, the lock is free" {
    FLIGHTS_FAILED=
    each_flight "$(tr ' ' , <<<"$CLUSTER_NODES")" by_seeds
    [[ -z $FLIGHTS_FAILED ]]
}
