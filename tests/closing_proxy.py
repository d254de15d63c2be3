"""A proxy to a Redis server's Unix socket that ends each connection once it has carried the answer
to a script.

closing_proxy.py SOCKET: prints the port that it listens on, then the time in ms of each connection,
a line each."""
import select, sys, time
from relay import connected, serve_forever

SCRIPT = b"EVAL"


def pass_on(server, client):
    """Passes on one answer; it has come when the server has nothing more to say for a moment."""
    while select.select([server], [], [], 0.005)[0]:
        piece = server.recv(65536)
        if not piece:
            break
        client.sendall(piece)


def serve(client):
    print(int(time.time() * 1000), flush=True)
    asked = False
    with connected(sys.argv[1]) as server:
        while True:
            ready = select.select([client, server], [], [])[0]
            if client in ready:
                piece = client.recv(65536)
                if not piece:
                    return
                asked = asked or SCRIPT in piece
                server.sendall(piece)
            if server in ready:
                pass_on(server, client)
                if asked:
                    return


serve_forever(serve)
