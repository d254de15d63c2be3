# Clients that take all the connections of servers, for the .bats files that need some. Loaded after
# helper.
# shellcheck shell=bash disable=SC2154

# crowd SOCKET...: as many clients as each of the servers takes, in the background as "crowd", until
# crowd_leaves.
crowd() {
    cat >"$T/crowd.py" <<'END'
import os
import socket
import sys
import time

crowd = []
for path in sys.argv[2:]:
    while True:
        one = socket.socket(socket.AF_UNIX)
        one.connect(path)
        try:
            one.sendall(b"AUTH rlock pw\r\n")
            said = one.recv(100)
            if not said or b"max number of clients" in said:
                break
        except OSError:
            break
        crowd.append(one)
print("full", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
END
    rm -f "$T/leave"
    bg crowd python3 "$T/crowd.py" "$T/leave" "$@"
    poll_until 20 contains "$T/crowd.out" full
}

crowd_leaves() { touch "$T/leave"; }
