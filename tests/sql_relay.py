"""A relay to a database server on this host that changes a word in what clients say.

sql_relay.py PORT FROM TO: to the server at PORT; TO has as many characters as FROM. Prints the port
that it listens on.
sql_relay.py PORT FROM FILE: what a client says with FROM in it is held back until FILE is there;
FILE.held is there before."""
import os
import socket
import sys
import threading
import time


def change(piece, words):
    if words[1][:1] != b"/":
        return piece.replace(*words)
    if words[0] in piece and not os.path.exists(words[1]):
        open(words[1] + b".held", "w").close()
        while not os.path.exists(words[1]):
            time.sleep(0.02)
    return piece


def carry(source, target, words=None):
    try:
        while piece := source.recv(1 << 20):
            target.sendall(change(piece, words) if words else piece)
    except OSError:
        pass
    for end in source, target:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def main():
    port, *words = sys.argv[1:]
    words = [word.encode() for word in words]
    assert words[1][:1] == b"/" or len(words[0]) == len(words[1])
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(listener.getsockname()[1], flush=True)
    while True:
        client = listener.accept()[0]
        server = socket.create_connection(("127.0.0.1", int(port)))
        for end in client, server:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=carry, args=(client, server, words), daemon=True).start()
        threading.Thread(target=carry, args=(server, client), daemon=True).start()


main()
