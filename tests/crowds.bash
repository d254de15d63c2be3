# Clients that take all the connections of servers, for the .bats files that need some. Loaded after
# helper.
# shellcheck shell=bash disable=SC2154

# crowd SOCKET|PORT...: as many clients as each of the servers takes, in the background as "crowd",
# until crowd_leaves. They take each place that becomes free.
crowd() {
    cat >"$T/crowd.py" <<'END'
import os
import socket
import sys
import time

crowd = []


def takes_one(place):
    try:
        if place.isdigit():
            one = socket.create_connection(("127.0.0.1", place))
        else:
            one = socket.socket(socket.AF_UNIX)
            one.connect(place)
        one.sendall(b"AUTH rlock pw\r\n")
        said = one.recv(100)
    except OSError:
        return False
    taken = said and b"max number of clients" not in said
    if taken:
        crowd.append(one)
    return taken


def take_all():
    for place in sys.argv[2:]:
        while takes_one(place):
            pass


take_all()
print("full", flush=True)
while not os.path.exists(sys.argv[1]):
    take_all()
    time.sleep(0.02)
END
    rm -f "$T/leave"
    bg crowd python3 "$T/crowd.py" "$T/leave" "$@"
    poll_until 20 contains "$T/crowd.out" full
}

crowd_leaves() { touch "$T/leave"; }
