# sentinel://: how the master is found, and what is said where it is not: H39, H40. The servers are
# a, the master, and b, its replica; the Sentinels are 1, 2 and 3; "on NAME WORD..." asks one of
# them. disturb: what the test does now is undone by a new deployment. tls_files NAME: the
# certificate of all of them; bytes_up PROXY: so many have gone through it. all_commands: each
# command that asks a store for a lock or a latch. each_flight SERVERS COMMAND: in one run after the
# other, another answer of the SERVERS is lost; each run ends well.

load helper
load sentinels
load decisions
load certificates
load flights

# The certificate of all of them.
tls_files() {
    TLS_FILES="--tls-cert-file $CERTS/$1.pem --tls-key-file $CERTS/$1.key --tls-ca-cert-file $CERTS/ca.pem"
}

@test "every command works through Sentinels" {
    prints 0 'k *' run k -- sh -c 'echo "$RLOCK_KEY $RLOCK_FENCE"'
    all_commands
}

@test "Sentinels of the URL that do not run cost no time, wherever they stand" {
    read -ra dead <<<"$(free_ports 2)"
    RLOCK_URL=$(sentinel_url "127.0.0.1:${dead[0]}" "127.0.0.1:${dead[1]}" 2)
    timed 0 15000 run -0 rlock run --connect-timeout 20s k -- true
    RLOCK_URL=$(sentinel_url "127.0.0.1:${dead[0]}" 1 "127.0.0.1:${dead[1]}" 2 3)
    run -0 rlock run k -- true
}

@test "a Sentinel that is stuck costs no time" {
    server_signal 1 STOP
    # A run that waited for its answer would take 20 s.
    timed 0 15000 run -0 rlock run --connect-timeout 20s k -- true
}

@test "a Sentinel's name that leads to several addresses: all of them are tried" {
    RLOCK_URL="sentinel://localhost:${port[1]},127.0.0.1:${port[2]}/$MASTER"
    run -0 rlock run k -- true
}

@test "H39 too few Sentinels to be sure who is the master: exit 69" {
    server_signal 1 STOP
    server_signal 2 STOP
    timed 500 12000 run -69 --separate-stderr rlock run --connect-timeout 2s k -- true
    stderr_line "^rlock: .*: only 1 of 3 sentinels answers: no answer from 127.0.0.1:${port[1]}, 127.0.0.1:${port[2]} \\(no answer in time\\)"
}

@test "H133 one Sentinel that missed a failover, behind two that refuse, is not believed" {
    disturb
    server_kill 1
    kill_master
    poll_until 20 names 2 b
    poll_until 20 names 3 b
    poll_until 20 has_role b master
    server_kill 2
    server_kill 3
    server_start a # a master again, as far as it knows
    sentinel_start 1
    poll_until 10 names 1 a
    refused 69 run --connect-timeout 3s k -- touch "$T/ran"
    stderr_line "^rlock: .*: only 1 of 3 sentinels answers: no answer from 127.0.0.1:${port[2]}, 127.0.0.1:${port[3]} \\(Connection refused\\)"
    # Nor where it alone is in the URL: it tells of the others.
    RLOCK_URL=$(sentinel_url 1)
    refused 69 run --connect-timeout 3s k -- touch "$T/ran"
    stderr_line "only 1 of 3 sentinels answers: no answer from 127.0.0.1:[0-9]+, 127.0.0.1:[0-9]+ \\(Connection refused\\)"
}

@test "H133 one Sentinel in the URL is enough, as long as most of all answer" {
    RLOCK_URL=$(sentinel_url 2)
    run -0 --separate-stderr rlock run k -- true
    server_signal 1 STOP
    quiet 0 run k -- true
}

@test "no Sentinel runs: exit 69 at once with --server-wait 0" {
    read -ra dead <<<"$(free_ports 2)"
    RLOCK_URL=$(sentinel_url "127.0.0.1:${dead[0]}" "127.0.0.1:${dead[1]}")
    timed 0 15000 run -69 --separate-stderr rlock run --server-wait 0 --connect-timeout 20s k -- true
    stderr_line "^rlock: .*cannot reach sentinel://127.0.0.1:${dead[0]},.*/$MASTER/0: no sentinel answers: 127.0.0.1:${dead[0]}, 127.0.0.1:${dead[1]} \\(Connection refused"
    stderr_line '^hint: '
}

@test "a master that the Sentinels do not know yet is asked for, as long as --server-wait says" {
    RLOCK_URL=${RLOCK_URL/$MASTER/yourmaster}
    timed 0 8000 run -69 --separate-stderr rlock run --server-wait 0 --connect-timeout 3s k -- true
    stderr_line "^rlock: .*the sentinels know no master 'yourmaster', but $MASTER"
    bg a rlock run --server-wait 1m k -- true
    poll_until 20 contains "$T/a.err" "know no master 'yourmaster', but $MASTER; trying again"
    run -1 grep 'no answer' "$T/a.err"
    disturb
    for one in 1 2 3; do
        on "$one" sentinel monitor yourmaster 127.0.0.1 "${port[a]}" 2
    done
    ends_with a 0
}

@test "servers taken for Sentinels, and a Sentinel for a server: said so" {
    run -69 --separate-stderr rlock run -u "$(sentinel_url a)" k -- true
    stderr_line "^rlock: .*sentinel 127.0.0.1:${port[a]}: what answers there is not a Sentinel"
    run -69 --separate-stderr rlock run -u "redis://127.0.0.1:${port[1]}" k -- true
    stderr_line "^rlock: .*this is a Sentinel.*sentinel://HOST:PORT/$MASTER"
}

@test "doctor looks at the master, and hears each Sentinel" {
    # finding LEVEL CHECK TEXT
    finding() {
        json ".servers[0].findings | any(.level == \"$1\" and .check == \"$2\" and (.text | contains(\"$3\")))"
    }
    run --separate-stderr rlock doctor --json
    finding fine sentinels "3 of 3 name the master 127.0.0.1:${port[a]}"
    finding note replicas "1 connected; no lock waits for them"
    run -0 jq -r '.findings[0].level' <<<"$output"
    [[ $output == fine ]] # the lock
    run --separate-stderr rlock doctor --json --replicas 1
    finding note replicas "min-replicas-to-write is 0"
    RLOCK_URL=${RLOCK_URL/$MASTER/yourmaster} run -69 --separate-stderr rlock doctor --json
    finding unfit reach "'yourmaster', but $MASTER"
    finding unfit sentinels "knows no such master"
    server_signal 2 STOP
    server_kill b
    run -1 --separate-stderr rlock doctor --json --connect-timeout 3s
    finding warning sentinels \
        "2 of 3 name the master 127.0.0.1:${port[a]}; 127.0.0.1:${port[2]} says nothing"
    finding warning replicas "no server can be promoted"
}

@test "H40 one Sentinel that names another master is outvoted" {
    disturb
    on 1 sentinel remove "$MASTER"
    on 1 sentinel monitor "$MASTER" 127.0.0.1 "${port[b]}" 2
    poll_until 10 names 1 b
    RLOCK_URL=$(sentinel_url 1 2 3)
    run -0 rlock run k -- true
    [[ $(on a exists 'rlock:{k}') == 1 ]]
    RLOCK_URL=$(sentinel_url 1 2)
    server_signal 3 STOP
    says 69 '^rlock: .*the sentinels do not agree on the master' run --connect-timeout 3s k -- true
}

# bytes_up NAME: that have gone through the proxy of that name.
bytes_up() {
    fault_of "$1" stats | awk '{ for (i = 1; i < NF; i++) if ($i == "up") print $(i + 1) }'
}

@test "a short run asks each Sentinel once, a long one over the same connection" {
    start_proxy one 127.0.0.1:0
    fault_of one target "127.0.0.1:${port[1]}"
    RLOCK_URL=$(sentinel_url "${proxy[one]}")
    run -0 rlock run k -- true
    poll_until 5 eval '[[ $(fault_of one stats) == *" open 0 "* ]]'
    run -0 fault_of one stats
    [[ $output == "accepted 1 open 0 "* ]]
    once=$(bytes_up one)
    ((once < 200))
    hold x k
    poll_until 10 eval '(($(bytes_up one) > 2 * once))'
    terminate x
    poll_until 5 eval '[[ $(fault_of one stats) == *" open 0 "* ]]'
    run -0 fault_of one stats
    [[ $output == "accepted 2 open 0 "* ]]
    # Sentinels are asked for others when it connects; later only for the master, in 62 bytes.
    ((($(bytes_up one) - 2 * once) % (54 + ${#MASTER}) == 0))
}

@test "a password is for the master, and for Sentinels that ask for one" {
    undeploy
    export REDISCLI_AUTH=secret
    deploy --requirepass secret
    disturb
    url=$RLOCK_URL
    run -77 --separate-stderr rlock run k -- true
    stderr_line "^rlock: .*/$MASTER/0: the master 127.0.0.1:${port[a]}: it asks for a password\$"
    RLOCK_URL=${url/:\/\//:\/\/:secret@}
    run -0 rlock run k -- true
    # These Sentinels ask for none.
    RLOCK_SENTINEL_PASSWORD=other run -0 rlock run --sentinel-user any k -- true

    disturb
    undeploy
    SENTINEL_LINES=("requirepass secret" "sentinel sentinel-pass secret")
    deploy --requirepass secret
    disturb
    url=$RLOCK_URL
    run -77 --separate-stderr rlock run k -- true
    stderr_line "^rlock: .*cannot reach sentinel://.*: sentinel 127.0.0.1:${port[1]}: it asks for a password\$"
    RLOCK_URL=${url/:\/\//:\/\/default:wrong@}
    run -77 --separate-stderr rlock run k -- true
    stderr_line "^rlock: .*cannot reach sentinel://.*: sentinel 127.0.0.1:${port[1]}: wrong password, or no such user\$"
    RLOCK_URL=${url/:\/\//:\/\/default:secret@}
    run -0 rlock run k -- true
    RLOCK_URL=$url
    echo secret >"$T/password"
    stay x k --lease 30s --password-file "$T/password"
    kill_master
    poll_until 30 has_role b master
    ends_well x
    [[ $(on b exists 'rlock:{k}') == 1 ]]
}

@test "Sentinels have a password and users of their own" {
    undeploy
    export REDISCLI_AUTH=secret SENTINEL_AUTH=watch RLOCK_PASSWORD=secret
    SENTINEL_LINES=("requirepass watch" "sentinel sentinel-pass watch"
        "user asker on >ask -@all $(printf " +sentinel|%s" get-master-addr-by-name sentinels myid masters)")
    deploy --requirepass secret
    disturb
    local wrong="cannot reach sentinel://.*: sentinel 127.0.0.1:${port[1]}: wrong password, or no such user\$"
    says 77 "^rlock: k: $wrong" run k -- touch "$T/ran"
    stderr_line '^hint: --sentinel-password-file'
    RLOCK_SENTINEL_PASSWORD=wrong says 77 "^rlock: k: $wrong" run k -- touch "$T/ran"
    RLOCK_SENTINEL_PASSWORD=watch says 77 "$wrong" run --sentinel-user asker k -- touch "$T/ran"
    [[ ! -e $T/ran ]]
    RLOCK_SENTINEL_PASSWORD=ask run -0 rlock run --sentinel-user asker k -- true
    RLOCK_SENTINEL_PASSWORD=watch run rlock doctor
    [[ $output == *'3 of 3 name the master '* ]]
    RLOCK_SENTINEL_PASSWORD=watch run -0 rlock run k -- env
    [[ $output != *RLOCK_SENTINEL_PASSWORD* ]]

    printf 'sentinel-password-file = watch\n' >"$T/config"
    echo wrong >"$T/watch"
    RLOCK_CONFIG=$T/config says 77 "$wrong" run k -- touch "$T/ran"
    echo watch >"$T/watch"
    RLOCK_CONFIG=$T/config stay x k --lease 30s
    kill_master
    b_is_master
    ends_well x
    [[ $(on b exists 'rlock:{k}') == 1 ]]
}

@test "TLS: Sentinels and master alike are verified" {
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
    stderr_line '^rlock: .*cannot reach sentinels://.*: no sentinel answers: .*certificate'
    run -69 --separate-stderr rlock run -u "$url" k -- true
    run rlock doctor --tls-ca "$CERTS/ca.pem"
    # The first to end: the server's, or that of its authority, which may be a second older.
    [[ $output == *"fine     certificate  the "*" ends in "* &&
        $output == *"fine     certificate  a Sentinel: the "*" ends in "* ]]
    # The Sentinels are looked at over connections that stay.
    stay x k --lease 30s --tls-ca "$CERTS/ca.pem"
    kill_master
    poll_until 30 has_role b master
    ends_well x
    [[ $(on b exists 'rlock:{k}') == 1 ]]

    disturb
    undeploy
    tls_files named
    deploy
    disturb
    run -69 rlock run --tls-ca "$CERTS/ca.pem" k -- true
    run -0 rlock run --tls-ca "$CERTS/ca.pem" --tls-server-name redis.test k -- true
}

# How often clients refused a certificate.
refused_certificates() {
    grep -c 'alert bad certificate' "$DEPLOYMENT/a/log" || true
}

@test "TLS: the master's certificate has to be for what the Sentinels call it" {
    undeploy
    authority ca
    certificate localhost ca subjectAltName=DNS:localhost
    tls_files localhost
    deploy
    disturb
    RLOCK_URL=${RLOCK_URL//127.0.0.1/localhost}
    run -69 --separate-stderr rlock run --tls-ca "$CERTS/ca.pem" k -- true
    stderr_line '^rlock: .*the master 127.0.0.1:.*the certificate there is not for 127.0.0.1'
    # Also where the servers are silent when the time is over.
    bg w rlock run --tls-ca "$CERTS/ca.pem" --connect-timeout 20s k -- true
    once=$(refused_certificates)
    poll_until 20 eval '(($(refused_certificates) > once))'
    server_kill b # which could become the master
    server_signal a STOP
    ends_with w 69 20
    server_signal a CONT
    contains "$T/w.err" 'the certificate there is not for 127.0.0.1'

    for i in 1 2 3; do
        on $i sentinel config set resolve-hostnames yes
        on $i sentinel config set announce-hostnames yes
        on $i sentinel remove "$MASTER"
        on $i sentinel monitor "$MASTER" localhost "${port[a]}" 2
    done
    quiet 0 run --tls-ca "$CERTS/ca.pem" k -- true
}

@test "H135 the agent is killed: the next one finds the master" {
    stay a k --lease 12s
    kill_agent a
    renewed k
    kill_agent a
    renewed k
    ends_well a
}

# by_sentinels PORT PORT PORT...: prints the address of the master by the Sentinels at the first
# three.
by_sentinels() { sentinel_url "127.0.0.1:$1" "127.0.0.1:$2" "127.0.0.1:$3"; }

@test "H141 an answer of a Sentinel or of its master that is lost: it runs once, the lock is free" {
    each_flight "${port[1]},${port[2]},${port[3]},${port[a]},${port[b]}" by_sentinels
}
