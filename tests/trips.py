"""A relay to a Redis server's Unix socket that counts round trips.

trips.py SOCKET: prints the port that it listens on, then a line for each connection that has ended:
how many times its client has spoken after it was answered, the first time included."""
import select, sys
from relay import connected, serve_forever


def serve(client):
    trips, answered = 0, True
    with connected(sys.argv[1]) as server:
        while True:
            ready = select.select([client, server], [], [])[0]
            # Earlier requests are counted before the present answer.
            source, target = (client, server) if client in ready else (server, client)
            piece = source.recv(1 << 20)
            if not piece:
                break
            trips += source is client and answered
            answered = source is server
            target.sendall(piece)
    print(trips, flush=True)


serve_forever(serve)
