# A proxy that keeps a request, and delivers it late (late_proxy.py), for .bats files. Loaded after
# helper.
# shellcheck shell=bash disable=SC2154

# start_late SERVER [NUMBER], as late_proxy.py has them. It is at the port $late_port.
start_late() {
    rm -f "$T/keep" "$T/late"
    bg_prints proxy python3 "$TESTS/late_proxy.py" "$1" "$T/keep" "$T/late" "${@:2}"
    late_port=$(head -n 1 "$T/proxy.out")
}

# keep HOW WORD, as late_proxy.py has it.
keep() {
    echo "$*" >"$T/keep.new"
    mv "$T/keep.new" "$T/keep"
}

# says_late WORD: waits until the proxy has said that.
says_late() {
    poll_until 20 contains "$T/proxy.out" "$1"
}

# arrives: the request that was kept goes to the server now.
arrives() {
    : >"$T/late"
    says_late arrived
}

# unheard WORD COMMAND...: a command at $LATE_URL whose request with that WORD meets silence, until
# its time is over. It may have asked once more since.
unheard() {
    keep silence "$1"
    rlock "$2" -u "$LATE_URL" --connect-timeout "$(patience 1000)ms" "${@:3}" || true
    says_late kept
}
