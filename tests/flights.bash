# Answers that are lost, one at a time, for the .bats files of several stores. Loaded after helper.
# shellcheck shell=bash disable=SC2154

# each_flight SERVERS COMMAND...: a run through proxies to the SERVERS (ports or Unix sockets, with
# commas between them) loses the answer to the first thing that it says, another one to the second,
# and so on until there are no more, each by a FIN and by an RST. "COMMAND... PORT..." prints a URL
# and options, with a port for each of SERVERS. Each runs its command once, ends with 0, and leaves
# a lock that is free.
each_flight() {
    local how flight FLIGHTS_FAILED=
    for how in FIN RST; do
        flight=0
        while one_flight "$how" $((++flight)) "$@"; do
            ((flight < 60)) || return 1
        done
        echo "$how: $((flight - 1)) flights"
        ((flight > 2)) || return 1
    done
    [[ ! $FLIGHTS_FAILED ]]
}

# Fails where there was no such flight.
one_flight() {
    local key=$1.$2 began=0 got=0 way
    bg proxy python3 "$TESTS/flight_proxy.py" "$3" "$2" "$1"
    poll_until 10 test -s "$T/proxy.out"
    # shellcheck disable=SC2046 # they are ports
    read -r -a way <<<"$("${@:4}" $(head -n 1 "$T/proxy.out"))"
    rm -f "$T/began"
    rlock run --server-wait 60s -u "${way[@]}" "$key" -- sh -c "echo began >>'$T/began'" \
        >"$T/flight.out" 2>"$T/flight.err" || got=$?
    kill "${pid[proxy]}"
    [[ ! -e $T/began ]] || began=$(wc -l <"$T/began")
    if ((got != 0 || began != 1)) || ! rlock run -n "$key" -- true; then
        echo "$1 in flight $2: status $got, the command began $began times, or the lock is not free"
        cat "$T/flight.err"
        FLIGHTS_FAILED+=" $1.$2"
    fi
    [[ $(tail -n 1 "$T/proxy.out") == reached ]]
}
