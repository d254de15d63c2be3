# rlock serve: its answers, limits on requests and clients, outages, where it listens. named
# ADDRESSES PORT: a server at the name "localhost", which has these addresses; status_for_host HOST
# PATH, hosts VERSION HOST...: the status of a request that names that host, or all of these.

load helper

setup_file() {
    [[ -x ${RLOCK%/*}/rlock-serve ]] || skip "no rlock-serve: it is built where libmicrohttpd is"
    command -v curl >/dev/null || skip "no curl here"
    start_file
}

# serve [OPTION...]: $URL leads to it.
serve() {
    bg_says serve "listening on http" rlock serve --listen 127.0.0.1:0 "$@"
    URL=$(sed -n 's/.*listening on //p' "$T/serve.err")
}

# get [OPTION OF CURL...] URL: prints the body of the answer.
get() {
    curl -sS --max-time 60 "$@" 3>&-
}

# http_status [OPTION OF CURL...] URL: prints the status of the answer.
http_status() {
    get -o /dev/null -w '%{http_code}' "$@"
}

answers() { # CODE PATH
    [[ $(http_status "$URL$2") == "$1" ]]
}

@test "a port alone is not an address: a hint shows one" {
    says 64 "^rlock: serve: '9464' is neither " serve --listen 9464
    stderr_line '^hint: 127.0.0.1:9464, or 0.0.0.0:9464 for other hosts$'
    says 64 '^hint: 127.0.0.1:9464, or 0.0.0.0:9464 for other hosts$' serve --listen :9464
    says 64 '^hint: rlock help serve$' serve --listen nonsense
}

@test "locks.json equals status --json, metrics equals rlock metrics, and there is nothing else" {
    rlock run free -- true
    hold a 'de<b>ploy' --label '<script>alert(1)</script>'
    queue w 'de<b>ploy'
    serve
    output=$(get "${URL}locks.json")
    json 'map(.key) == ["de<b>ploy"] and .[0].holders[0].label == "<script>alert(1)</script>" and
          (.[0].waiters | length) == 1'
    [[ $(jq -S 'map(del(.. | .age_ms?, .lease_left_ms?))' <<<"$output") == "$(
        rlock status --json | jq -S 'map(del(.. | .age_ms?, .lease_left_ms?))')" ]]
    get -D "$T/headers" "${URL}metrics" >"$T/metrics"
    contains "$T/metrics" 'rlock_waiters{key="de<b>ploy"} 1'
    contains "$T/metrics" 'rlock_acquired_total{key="free"} 1'
    [[ $(tail -n 1 "$T/metrics") == "# EOF" ]]
    output=$(get "${URL}history.json")
    [[ $output == "$(rlock history --json)" && $output == *'"key":"free"'* ]]
    output=$(get "${URL}about.json")
    json '.store == "'"unix://$REDIS_SOCK"'" and .prefix == "rlock"'
    get -D "$T/headers.table" "${URL}locks.txt" >"$T/table"
    grep -qE '^de<b>ploy +exclusive .*' "$T/table"
    grep -qi '^refresh: 5' "$T/headers.table"
    grep -qi '^content-type: text/plain; version=0.0.4' "$T/headers"
    [[ $(http_status "${URL}other") == 404 && $(http_status "${URL}../etc/passwd" --path-as-is) == 404 ]]
}

@test "the heading counts the locks of a later rlock, and not a latch that was named" {
    redis hset 'rlock:{later}' k lock/2
    rlock latch set latch 1
    serve latch 'l*'
    [[ $(get "${URL}locks.txt") == *'no locks, 1 written by a newer rlock'* ]]
}

@test "the page and all that it needs come only from this server" {
    serve
    for file in '' page.css page.js; do
        get -D "$T/headers" "$URL$file" >"$T/file"
        grep -qi "^content-security-policy: default-src 'none'; script-src 'self'" "$T/headers"
        [[ -s $T/file ]]
        fails grep -E '(https?:)?//[a-z]|innerHTML|eval|style=|onclick=' "$T/file"
    done
}

@test "serve changes nothing: other methods, bodies and headers without end are refused" {
    serve
    for method in POST PUT DELETE OPTIONS PATCH BREW; do
        [[ $(http_status -X "$method" "${URL}locks.json") == 405 ]]
    done
    [[ $(http_status -d x=y "${URL}") == 405 && $(http_status -X GET -d x=y "${URL}metrics") == 413 ]]
    [[ $(http_status -I "${URL}metrics") == 200 ]]
    [[ $(http_status -H "X: $(printf '%020000d' 0)" "$URL") == 431 ]]
    [[ $(http_status "$URL$(printf '%020000d' 0)") =~ ^4 ]]
    answers 200 locks.json
}

# How often the server was asked for a lock.
surveys() {
    redis info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'
}

@test "many requests at once cost the lock server one survey a second" {
    rlock acquire --lease 1h k
    serve
    answers 200 locks.json
    before=$(surveys) began=$(now_ms)
    for ((i = 0; i < 300; i++)); do
        printf 'url=%s\noutput=/dev/null\n' "${URL}locks.json"
    done >"$T/requests"
    get --parallel --parallel-max 40 -K "$T/requests" -w '%{http_code}\n' >"$T/codes" 2>"$T/err"
    [[ $(sort "$T/codes" | uniq -c | xargs) == "300 200" ]]
    # One survey a second, one that was begun before a second was over, and one of the next second.
    (($(surveys) - before <= ($(now_ms) - began) / 1000 + 2))
    # Former runs are another survey, when somebody asks for them.
    answers 200 history.json
    # No client asks, so the store is not asked.
    poll_until 5 answers 200 ''
    before=$(surveys)
    sleep 2 # two surveys, if they were made without a request
    [[ $(surveys) == "$before" ]]
}

@test "while the store is away serve says so at once, and it continues when the store is back" {
    serve
    answers 200 locks.json
    kill -STOP "$(<"$REDIS_DIR/pid")"
    poll_until 25 answers 503 locks.json
    output=$(get "${URL}locks.json")
    json '.error == "no answer" and (.seen | test("Z$"))'
    [[ $(get "${URL}metrics" | grep -v '^#') == "rlock_up 0" && $(http_status "${URL}") == 200 ]]
    kill -CONT "$(<"$REDIS_DIR/pid")"
    poll_until 25 answers 200 locks.json
    redis_stop
    poll_until 25 answers 503 locks.json
    output=$(get "${URL}locks.json")
    json '.error | startswith("cannot reach unix://")'
    [[ $output != *pw@* && $(<"$T/serve.err") != *pw@* ]]
    redis_start
    poll_until 25 answers 200 locks.json
    [[ $(get "${URL}metrics") == *"rlock_up 1"* ]]
}

@test "serve begins whether the store is there or not" {
    RLOCK_URL=unix://$T/nothing serve
    [[ $(http_status "${URL}locks.json") == 503 && $(http_status "${URL}metrics") == 200 ]]
}

# status_for_host HOST PATH: the status of a request that names that host.
status_for_host() {
    http_status -H "Host: $1" "$URL$2"
}

# whole HOST TARGET: the same of a request for a whole address, with that Host beside it.
whole() {
    http_status -H "Host: $1" --request-target "$2" "$URL"
}

# hosts VERSION HOST...: the same with all of them.
hosts() {
    local address=${URL#http://} version=$1 fd status
    address=${address%/}
    shift
    exec {fd}<>"/dev/tcp/${address%:*}/${address##*:}"
    {
        printf 'GET /locks.json HTTP/%s\r\n' "$version"
        printf 'Host: %s\r\n' "$@"
        printf '\r\n'
    } >&"$fd"
    read -r _ status _ <&"$fd"
    exec {fd}>&-
    echo "$status"
}

@test "a page that is led here by its own name reads nothing: only known names are answered" {
    serve --allow-host locks.example.com --allow-host other
    for host in 127.0.0.1 10.2.3.4:9750 '[::1]:9750' localhost LOCALHOST:80 localhost. "$(hostname)" \
        "$(hostname):1" locks.example.com Locks.Example.com:443 other; do
        for path in '' locks.json page.js page.css; do
            [[ $(status_for_host "$host" "$path") == 200 ]]
        done
    done
    for host in evil.example evil.example:9750 localhost.evil.example 127.0.0.1.evil.example \
        example.com x.locks.example.com '[::1' 'localhost@evil.example'; do
        for path in '' locks.json page.js page.css other; do
            [[ $(status_for_host "$host" "$path") == 403 ]]
        done
        [[ $(status_for_host "$host" metrics) == 200 && $(status_for_host "$host" healthz) == 200 ]]
    done
    [[ $(get -H 'Host: evil.example' "${URL}locks.json") == *'rlock serve --allow-host NAME'* ]]
    # In a whole address, its host counts.
    for target in http://localhost http://localhost/ HTTP://127.0.0.1:1/locks.json \
        'http://other/locks.json?x=1' http://evil.example/metrics; do
        [[ $(whole evil.example "$target") == 200 ]]
    done
    for target in http://evil.example/locks.json http:///locks.json http://localhost@evil.example/; do
        [[ $(whole localhost "$target") == 403 ]]
    done
    [[ $(whole localhost http://localhost/other) == 404 ]]
    # Without one: HTTP/1.1 requires it, and an HTTP/1.0 client is not a browser.
    [[ $(http_status -H 'Host:' "${URL}locks.json") == 400 && $(http_status -H 'Host:' "${URL}metrics") == 400 ]]
    [[ $(http_status -0 -H 'Host:' "${URL}locks.json") == 200 ]]
    # One of two names may be for whoever checks it, and the other for whoever acts by it.
    [[ $(hosts 1.1 localhost) == 200 ]]
    [[ $(hosts 1.1 localhost evil.example) == 400 && $(hosts 1.1 localhost localhost) == 400 ]]
    [[ $(hosts 1.0 localhost localhost) == 400 ]]
    # The name that it was told to listen at.
    bg_says named "listening on http" rlock serve --listen localhost:0
    URL=$(sed -n '1s/.*listening on //p' "$T/named.err")
    [[ $(status_for_host localhost locks.json) == 200 && $(status_for_host locks.example.com locks.json) == 403 ]]
}

@test "clients that say nothing, or little, keep no client out: the oldest of them is closed" {
    serve
    cat >"$T/slow.py" <<'END'
# Half of these clients say nothing, the others a byte at a time, so that none falls silent.
import select, socket, sys, time
host, port = sys.argv[1].rstrip("/").rsplit(":", 1)
clients = [socket.create_connection((host, int(port))) for number in range(200)]
talkers = clients[::2]
for client in talkers:
    client.sendall(b"GET / HTTP/1.1\r\nX: ")
open(sys.argv[2], "w").close()
while True:
    ended = select.select(clients, [], [], 0.2)[0]
    clients = [client for client in clients if client not in ended]
    talkers = [client for client in talkers if client not in ended]
    print(len(clients), flush=True)
    for client in talkers:
        try:
            client.sendall(b"a")
        except OSError:
            pass
END
    bg slow python3 "$T/slow.py" "${URL#http://}" "$T/connected"
    poll_until 20 test -e "$T/connected"
    [[ $(http_status "${URL}metrics") == 200 ]]
    # The clients that came last are still there: no time was up.
    poll_until 10 test -s "$T/slow.out"
    (($(tail -n 1 "$T/slow.out") >= 60))
}

# The store is stopped: the page of the locks fails with 503, and the address for the health of
# rlock serve itself does not.
@test "/healthz answers as long as rlock serve does, whatever the state of the store" {
    serve
    [[ $(get "${URL}healthz") == ok && $(http_status -X POST "${URL}healthz") == 405 ]]
    redis_stop
    poll_until 25 answers 503 locks.json
    answers 200 healthz
}

# The password is "secret".
HASH='$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW'

@test "--auth-file: a user and a password for everything but /healthz" {
    printf '# who may look\nada:%s\n' "$HASH" >"$T/users"
    serve --auth-file "$T/users"
    # For a moment after a wrong password no other one is tried: 429.
    for path in '' page.css page.js locks.json metrics other; do
        [[ $(http_status "$URL$path") == 401 && $(http_status -u ada:WRONG "$URL$path") =~ ^(401|429)$ ]]
        [[ $(http_status -H 'Authorization: Bearer secret' "$URL$path") == 401 ]]
        poll_until 5 answers_ada "$([[ $path == other ]] && echo 404 || echo 200)" "$path"
    done
    get -D "$T/headers" "$URL" >"$T/body"
    grep -qi '^www-authenticate: Basic realm="rlock"' "$T/headers"
    [[ $(<"$T/body") != *rlock* ]]
    [[ $(http_status "${URL}healthz") == 200 && $(http_status -u ada:secret "${URL}healthz") == 200 ]]
    [[ $(http_status -u eve:secret "$URL") =~ ^(401|429)$ && $(http_status -u :secret "$URL") =~ ^(401|429)$ ]]
    # A name that leads here by itself is refused with the password, too.
    [[ $(http_status -u ada:secret -H 'Host: evil.example' "$URL") == 403 ]]
    bg_says socket "listening on" rlock serve --listen "unix:$T/sock" --auth-file "$T/users"
    [[ $(http_status --unix-socket "$T/sock" http://x/metrics) == 401 ]]
    [[ $(http_status --unix-socket "$T/sock" -u ada:secret http://x/metrics) == 200 ]]
}

# answers_ada STATUS PATH: so the server answers the user ada.
answers_ada() { # CODE PATH
    [[ $(http_status -u ada:secret "$URL$2") == "$1" ]]
}

@test "wrong passwords do not keep serve busy: while one has just been wrong, no other is tried" {
    # This cost takes some tenths of a second.
    printf 'ada:%s\nbob:%s\n' "$HASH" "${HASH/\$04\$/\$12\$}" >"$T/users"
    serve --auth-file "$T/users"
    answers_ada 200 ''
    for ((i = 0; i < 40; i++)); do
        printf 'url=%s\noutput=/dev/null\nuser=bob:%s\n' "$URL" "$i"
    done >"$T/requests"
    get --parallel --parallel-max 40 -K "$T/requests" -w '%{http_code}\n' >"$T/codes" 2>"$T/err"
    [[ $(sort -u "$T/codes" | xargs) == "401 429" && $(grep -c 429 "$T/codes") -gt 20 ]]
    # A password that was right before is known, and is accepted.
    answers_ada 200 ''
}

@test "an --auth-file that makes no sense is told with its line, one that is not there as misuse" {
    printf 'ada:%s\nbob:plain\n' "$HASH" >"$T/users"
    run -78 rlock serve --listen 127.0.0.1:0 --auth-file "$T/users"
    [[ $output == *": --auth-file $T/users:2: not a bcrypt hash (htpasswd -B makes one)"* ]]
    echo '# ada' >"$T/users"
    run -78 rlock serve --listen 127.0.0.1:0 --auth-file "$T/users"
    [[ $output == "rlock: serve: --auth-file $T/users: it has no user" ]]
    printf 'ada:%s\0\n' "$HASH" >"$T/users"
    run -78 rlock serve --listen 127.0.0.1:0 --auth-file "$T/users"
    [[ $output == *": it has a NUL byte" ]]
    run -64 rlock serve --listen 127.0.0.1:0 --auth-file "$T/none"
    [[ $output == *"--auth-file '$T/none' cannot be read: No such file or directory"* ]]
}

@test "beyond loopback without a password: a warning" {
    local where warning="everyone who can reach it sees all locks; --auth-file asks for a password"
    echo "ada:$HASH" >"$T/users"
    for where in 0.0.0.0:0 '[::]:0'; do
        bg_says open "$warning" rlock serve --listen "$where"
        bg_says closed "listening on" rlock serve --listen "$where" --auth-file "$T/users"
        kill -TERM "${pid[open]}" "${pid[closed]}"
        finish open
        finish closed
        fails contains "$T/closed.err" "$warning"
    done
    for where in 127.0.0.1:0 127.1.2.3:0 '[::1]:0' '[::ffff:127.0.0.1]:0' "unix:$T/local"; do
        bg_says near "listening on" rlock serve --listen "$where"
        terminate near
        fails contains "$T/near.err" "$warning"
    done
}

# named ADDRESSES PORT: starts it at "localhost", which has these addresses.
named() {
    SHIM_DNS_ADDRESSES=$1 LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_dns.so \
        bg named rlock serve --listen "localhost:$2"
}

@test "serve at a name listens at all its addresses, but those that this host lacks" {
    local address port warning="everyone who can reach it sees all locks"
    port=$(free_ports 1)
    named '127.0.0.1 127.0.0.2 127.0.0.1' "$port"
    poll_until 10 contains "$T/named.err" "listening on http://127.0.0.2:$port/"
    [[ $(grep -c 'listening on' "$T/named.err") == 2 ]]
    for address in 127.0.0.1 127.0.0.2; do
        [[ $(http_status "http://$address:$port/locks.json") == 200 ]]
    done
    fails contains "$T/named.err" "$warning"
    terminate named 0
    # 192.0.2.1 is of a network for documentation.
    named '192.0.2.1 127.0.0.2' "$port"
    poll_until 10 contains "$T/named.err" "listening on http://127.0.0.2:$port/"
    [[ $(grep -c 'listening on' "$T/named.err") == 1 ]]
    # Another program has one of them.
    named '127.0.0.1 127.0.0.2' "$port"
    ends_with named 71
    contains "$T/named.err" "localhost:$port: cannot listen: Address already in use"
    named '127.0.0.1 0.0.0.0' 0
    poll_until 10 contains "$T/named.err" "$warning"
}

@test "a Unix socket: a stale one is replaced, a live one is not; TERM ends it and removes it" {
    bg_says one "listening on unix:$T/sock" rlock serve --listen "unix:$T/sock"
    [[ $(http_status --unix-socket "$T/sock" http://x/locks.json) == 200 ]]
    run -71 rlock serve --listen "unix:$T/sock"
    [[ $output == "rlock: serve: unix:$T/sock: cannot listen: Address already in use" ]]
    kill -KILL "${pid[one]}"
    poll_until 10 gone "${pid[one]}"
    [[ -S $T/sock ]]
    bg_says two "listening on" rlock serve --listen "unix:$T/sock"
    [[ $(http_status --unix-socket "$T/sock" http://x/metrics) == 200 ]]
    terminate two
    [[ $status == 0 && ! -e $T/sock ]]
    echo text >"$T/file"
    run -71 rlock serve --listen "unix:$T/file"
    [[ $(<"$T/file") == text ]]
}

@test "bad usage: 64; it cannot listen there, or is not installed: 71; arguments have no password" {
    run -64 rlock serve
    [[ $output == "rlock: serve: no --listen"* ]]
    run -64 "${RLOCK%/*}/rlock-serve"
    [[ $output == "rlock: serve: '' is neither"* ]]
    for where in 9750 :9750 127.0.0.1: 127.0.0.1:x 127.0.0.1:70000 ::1:9750 unix:; do
        run -64 rlock serve --listen "$where"
        [[ $output == *"is neither ADDR:PORT nor unix:PATH"* ]]
    done
    run -64 rlock serve --listen 127.0.0.1:0 'a b'
    for where in '' x:80 http://x '*' '[::1]'; do
        run -64 rlock serve --listen 127.0.0.1:0 --allow-host "$where"
        [[ $output == *"--allow-host '$where' is not the name of a host"* ]]
    done
    run -71 rlock serve --listen 192.0.2.1:9750
    [[ $output == "rlock: serve: 192.0.2.1:9750: cannot listen: "* ]]
    serve
    [[ $(tr '\0' ' ' <"/proc/${pid[serve]}/cmdline") == *"serve --listen 127.0.0.1:0 " ]]
    cp "$RLOCK" "$T/rlock"
    [[ ! -e /usr/local/libexec/rlock/rlock-serve ]] || return 0
    RLOCK=$T/rlock run -71 rlock serve --listen 127.0.0.1:0
    [[ ${lines[0]} == "rlock: serve: the program rlock-serve is not installed" &&
        ${lines[1]} == "hint: install the package rlock-serve"* ]]
}
