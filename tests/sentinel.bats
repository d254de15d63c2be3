# sentinel://: how the master is found, and what is said where it is not: H39, H40.

load helper
load sentinels
load certificates

# The certificate of all of them.
tls_files() {
    TLS_FILES="--tls-cert-file $CERTS/$1.pem --tls-key-file $CERTS/$1.key --tls-ca-cert-file $CERTS/ca.pem"
}

@test "every command works through Sentinels" {
    run -0 rlock run k -- sh -c 'echo "$RLOCK_KEY $RLOCK_FENCE"'
    [[ $output == "k "* ]]
    hold x k --lease 3s
    run -0 rlock status k
    [[ $output == "k: exclusive"* ]]
    run -0 rlock force-release --yes k
    finish x
    [[ $status == 79 ]]
    run -0 rlock latch set l 1
    run -0 rlock latch count-down l
    run -0 rlock latch wait l
    run -0 rlock acquire k
    run -0 rlock release --owner "$output" k
}

@test "Sentinels that do not run cost nothing, wherever they stand" {
    local dead before
    read -ra dead <<<"$(free_ports 2)"
    RLOCK_URL=$(sentinel_url "127.0.0.1:${dead[0]}" "127.0.0.1:${dead[1]}" 2)
    before=$(now_ms)
    run -0 rlock run k -- true
    within 0 1000 $(($(now_ms) - before))
    RLOCK_URL=$(sentinel_url "127.0.0.1:${dead[0]}" 1 "127.0.0.1:${dead[1]}" 2 3)
    run -0 rlock run k -- true
}

@test "a Sentinel that is stuck costs nothing" {
    local before
    server_signal 1 STOP
    before=$(now_ms)
    run -0 rlock run k -- true
    within 0 1000 $(($(now_ms) - before))
}

@test "names: all addresses of a Sentinel's are tried" {
    RLOCK_URL="sentinel://localhost:${port[1]},127.0.0.1:${port[2]}/mymaster"
    run -0 rlock run k -- true
}

@test "H39 too few Sentinels to be sure who is the master: 69" {
    local before
    server_signal 1 STOP
    server_signal 2 STOP
    before=$(now_ms)
    run -69 --separate-stderr rlock run --connect-timeout 2s k -- true
    within 500 3000 $(($(now_ms) - before))
    stderr_line '^rlock: .*: 1 of 3 sentinels answers, too few to be sure'
}

@test "no Sentinel runs: 69 at once" {
    local dead before
    read -ra dead <<<"$(free_ports 2)"
    RLOCK_URL=$(sentinel_url "127.0.0.1:${dead[0]}" "127.0.0.1:${dead[1]}")
    before=$(now_ms)
    run -69 --separate-stderr rlock run k -- true
    within 0 1000 $(($(now_ms) - before))
    stderr_line "^rlock: .*cannot reach sentinel://127.0.0.1:${dead[0]},.*/mymaster/0: no sentinel answers \\(127.0.0.1:${dead[0]}: Connection refused"
    stderr_line '^hint: '
}

@test "a master's name that nobody knows: 69 at once, with those that are known" {
    local before
    RLOCK_URL=${RLOCK_URL/mymaster/yourmaster}
    before=$(now_ms)
    run -69 --separate-stderr rlock run k -- true
    within 0 1000 $(($(now_ms) - before))
    stderr_line "^rlock: .*the sentinels know no master 'yourmaster', but mymaster"
}

@test "servers taken for Sentinels, and a Sentinel for a server: said so" {
    run -69 --separate-stderr rlock run -u "$(sentinel_url a)" k -- true
    stderr_line "^rlock: .*sentinel 127.0.0.1:${port[a]}: what answers there is not a Sentinel"
    run -69 --separate-stderr rlock run -u "redis://127.0.0.1:${port[1]}" k -- true
    stderr_line '^rlock: .*this is a Sentinel.*sentinel://HOST:PORT/mymaster'
}

@test "doctor looks at the master, and hears each Sentinel" {
    # finding LEVEL CHECK TEXT
    finding() {
        json ".servers[0].findings | any(.level == \"$1\" and .check == \"$2\" and (.text | contains(\"$3\")))"
    }
    run --separate-stderr rlock doctor --json
    finding fine sentinels "3 of 3 name the master 127.0.0.1:${port[a]}"
    finding note replicas "1, which nobody waits for"
    run -0 jq -r '.findings[0].level' <<<"$output"
    [[ $output == fine ]] # the lock
    run --separate-stderr rlock doctor --json --replicas 1
    finding note replicas "min-replicas-to-write is 0"
    RLOCK_URL=${RLOCK_URL/mymaster/yourmaster} run -69 --separate-stderr rlock doctor --json
    finding unfit reach "'yourmaster', but mymaster"
    finding unfit sentinels "knows no such master"
    server_signal 2 STOP
    server_kill b
    run -1 --separate-stderr rlock doctor --json --connect-timeout 1s
    finding warning sentinels "2 of 3 name the master 127.0.0.1:${port[a]}; 127.0.0.1:${port[2]} says nothing"
    finding warning replicas "nobody to be promoted"
}

@test "H40 one Sentinel that names another master is outvoted" {
    disturb
    on 1 sentinel remove mymaster
    on 1 sentinel monitor mymaster 127.0.0.1 "${port[b]}" 2
    poll_until 10 names 1 b
    RLOCK_URL=$(sentinel_url 1 2 3)
    run -0 rlock run k -- true
    [[ $(on a exists 'rlock:{k}') == 1 ]]
    RLOCK_URL=$(sentinel_url 1 2)
    run -69 --separate-stderr rlock run --connect-timeout 1s k -- true
    stderr_line '^rlock: .*the sentinels do not agree on the master'
}

all_closed() {
    [[ $(fault_of one stats) == *" open 0 "* ]]
}

@test "a short run asks each Sentinel once, a long one over the same connection" {
    start_proxy one 127.0.0.1:0
    fault_of one target "127.0.0.1:${port[1]}"
    RLOCK_URL=$(sentinel_url "${proxy[one]}")
    run -0 rlock run k -- true
    poll_until 5 all_closed
    run -0 fault_of one stats
    [[ $output == "accepted 1 open 0 up 62 down "* ]]
    run -0 rlock run k -- sleep 5
    poll_until 5 all_closed
    run -0 fault_of one stats
    [[ $output == "accepted 2 open 0 up 186 down "* ]]
}

@test "passwords: the master's alone; the Sentinels' too, which have to be the same" {
    local url
    undeploy
    export REDISCLI_AUTH=secret
    deploy --requirepass secret
    disturb
    url=$RLOCK_URL
    run -77 --separate-stderr rlock run k -- true
    stderr_line "^rlock: .*/mymaster/0: the master 127.0.0.1:${port[a]}: NOAUTH"
    RLOCK_URL=${url/:\/\//:\/\/:secret@}
    run -0 rlock run k -- true

    disturb
    undeploy
    SENTINEL_LINES=("requirepass secret" "sentinel sentinel-pass secret")
    deploy --requirepass secret
    disturb
    url=$RLOCK_URL
    run -77 --separate-stderr rlock run k -- true
    stderr_line "^rlock: .*cannot reach sentinel://.*: sentinel 127.0.0.1:${port[1]}: NOAUTH"
    RLOCK_URL=${url/:\/\//:\/\/default:wrong@}
    run -77 --separate-stderr rlock run k -- true
    stderr_line "^rlock: .*cannot reach sentinel://.*: sentinel 127.0.0.1:${port[1]}: WRONGPASS"
    RLOCK_URL=${url/:\/\//:\/\/default:secret@}
    run -0 rlock run k -- true
    RLOCK_URL=$url
    echo secret >"$T/password"
    work x k 8 --lease 12s --password-file "$T/password"
    working x
    server_kill a
    finish x
    [[ $status == 0 ]]
    [[ $(on b exists 'rlock:{k}') == 1 ]]
}

@test "TLS: Sentinels and master alike are verified" {
    local url
    undeploy
    authority ca
    authority other
    certificate server ca subjectAltName=DNS:localhost,IP:127.0.0.1
    certificate named ca subjectAltName=DNS:redis.test
    tls_files server
    deploy
    disturb
    url=$RLOCK_URL
    run -0 rlock run --tls-ca "$CERTS/ca.pem" k -- true
    RLOCK_URL=${url/sentinel:/sentinels:}
    run -0 rlock run --tls-ca "$CERTS/ca.pem" k -- true
    RLOCK_URL=${RLOCK_URL//127.0.0.1/localhost}
    run -0 rlock run --tls-ca "$CERTS/ca.pem" k -- true
    run -69 --separate-stderr rlock run --tls-ca "$CERTS/other.pem" k -- true
    stderr_line '^rlock: .*cannot reach sentinels://.*: no sentinel answers .*certificate'
    run -69 --separate-stderr rlock run -u "$url" k -- true
    # The Sentinels are looked at over connections that stay.
    work x k 8 --lease 12s --tls-ca "$CERTS/ca.pem"
    working x
    server_kill a
    finish x
    [[ $status == 0 ]]
    [[ $(on b exists 'rlock:{k}') == 1 ]]

    disturb
    undeploy
    tls_files named
    deploy
    disturb
    run -69 rlock run --tls-ca "$CERTS/ca.pem" k -- true
    run -0 rlock run --tls-ca "$CERTS/ca.pem" --tls-server-name redis.test k -- true
}

@test "TLS: what the Sentinels call the master is what its certificate has to be for" {
    local i
    undeploy
    authority ca
    certificate localhost ca subjectAltName=DNS:localhost
    tls_files localhost
    deploy
    disturb
    RLOCK_URL=${RLOCK_URL//127.0.0.1/localhost}
    run -69 --separate-stderr rlock run --tls-ca "$CERTS/ca.pem" --connect-timeout 1s k -- true
    stderr_line '^rlock: .*the master 127.0.0.1:.*the certificate there is not for 127.0.0.1'
    for i in 1 2 3; do
        on $i sentinel config set resolve-hostnames yes
        on $i sentinel config set announce-hostnames yes
        on $i sentinel remove mymaster
        on $i sentinel monitor mymaster localhost "${port[a]}" 2
    done
    run -0 --separate-stderr rlock run --tls-ca "$CERTS/ca.pem" k -- true
    [[ -z $stderr ]]
}
