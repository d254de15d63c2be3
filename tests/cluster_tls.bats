# A Redis Cluster whose nodes speak only TLS, also to each other.

load helper
load certificates
load cluster

setup_file() {
    authority ca
    authority other
    certificate node ca subjectAltName=DNS:node.test,IP:127.0.0.1
    certificate client ca extendedKeyUsage=clientAuth
    CLUSTER_CLI="--tls --cacert $CERTS/ca.pem --cert $CERTS/client.pem --key $CERTS/client.key"
    cluster_file --tls-cluster yes --tls-replication yes --tls-auth-clients yes --port 0 \
        --tls-cert-file "$CERTS/node.pem" --tls-key-file "$CERTS/node.key" \
        --tls-ca-cert-file "$CERTS/ca.pem" --tls-port
    RLOCK_URL=${RLOCK_URL/cluster:/clusters:}
    RLOCK_CONFIG=$BATS_FILE_TMPDIR/config
    export RLOCK_CONFIG
    printf '%s\n' "tls-ca = $CERTS/ca.pem" "tls-cert = $CERTS/client.pem" \
        "tls-key = $CERTS/client.key" \
        >"$RLOCK_CONFIG"
}

@test "over TLS each key is locked at its master, whichever node the URL names" {
    for key in "${at[@]}"; do
        for node in $CLUSTER_NODES; do
            quiet 7 run -u "clusters://127.0.0.1:$node" "$key" -- sh -c 'exit 7'
        done
        hold "$key" "$key"
    done
    [[ $(rlock status --json | jq length) == 3 ]]
    queued "${at[0]}" bg w rlock run "${at[@]}" -- true
    kill "${pid[${at[0]}]}" "${pid[${at[1]}]}" "${pid[${at[2]}]}"
    ends_with w 0
}

@test "a node's certificate has to be for the address that the Cluster tells, or the name given" {
    local key=${at[2]} first
    first=clusters://127.0.0.1:${CLUSTER_NODES%% *}
    run -0 rlock run --tls-server-name node.test "${at[@]}" -- true
    says 69 'cannot reach clusters://127.0.0.1' run -u "$first" --tls-server-name other.test \
        "$key" -- touch "$T/run"
    says 69 'cannot reach clusters://127.0.0.1' run -u "$first" --tls-ca "$CERTS/other.pem" "$key" \
        -- touch "$T/run"
    refused 69 run -u "${first/clusters/cluster}" "$key" -- touch "$T/run"
}

@test "H131 certificates that were read from pipes serve for every node" {
    run -7 --separate-stderr rlock run --config /dev/null --tls-ca <(cat "$CERTS/ca.pem") \
        --tls-cert <(cat "$CERTS/client.pem") \
        --tls-key <(cat "$CERTS/client.key") "${at[@]}" -- sh -c 'exit 7'
    [[ -z $stderr ]]
}
