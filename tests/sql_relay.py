"""A relay to a database server on this host that changes a word in what clients say.

sql_relay.py PORT FROM TO: to the server at PORT; TO has as many characters as FROM. Prints the port
that it listens on.
sql_relay.py PORT FROM FILE: what a client says with FROM in it is held back until FILE is there;
FILE.held is there before."""
import os, sys, time
from relay import carry_both, connected, serve_forever

WORDS = [word.encode() for word in sys.argv[2:]]
assert WORDS[1][:1] == b"/" or len(WORDS[0]) == len(WORDS[1])


def change(piece):
    if WORDS[1][:1] != b"/":
        return piece.replace(*WORDS)
    if WORDS[0] in piece and not os.path.exists(WORDS[1]):
        open(WORDS[1] + b".held", "w").close()
        while not os.path.exists(WORDS[1]):
            time.sleep(0.02)
    return piece


serve_forever(lambda client: carry_both(client, connected(sys.argv[1]), change))
