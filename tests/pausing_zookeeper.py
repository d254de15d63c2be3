"""A relay to a ZooKeeper server on this host that can pause a client which is about to read nodes.

pausing_zookeeper.py PORT FOLDER: to the server at PORT. Prints the port that it listens on. Where
FOLDER/armed is there, a getData waits until that file has gone, and FOLDER/paused is made first."""
import os, struct, sys, time
from relay import carry_both, connected, serve_forever

PORT, FOLDER = sys.argv[1:]
GET_DATA = 4


def pause(requests):
    """Each request: its length, which does not count, its number and its kind."""
    at = 0
    while at + 12 <= len(requests):
        length, _, kind = struct.unpack_from(">iii", requests, at)
        at += 4 + length
        if kind == GET_DATA and os.path.exists(f"{FOLDER}/armed"):
            open(f"{FOLDER}/paused", "w").close()
            while os.path.exists(f"{FOLDER}/armed"):
                time.sleep(0.01)
    return requests


def serve(client):
    with connected(PORT) as server:
        carry_both(client, server, pause)


serve_forever(serve)
