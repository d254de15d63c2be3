"""A relay to a Redis server's Unix socket that counts round trips.

trips.py SOCKET: prints the port that it listens on, then a line for each connection that has ended:
how many times its client has spoken after it was answered, the first time included."""
import select, socket, sys, threading


def serve(client):
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[1])
    trips, answered = 0, True
    with client, server:
        while True:
            ready = select.select([client, server], [], [])[0]
            # Earlier requests are counted before the present answer.
            if client in ready:
                piece = client.recv(1 << 20)
                if not piece:
                    break
                trips, answered = trips + answered, False
                server.sendall(piece)
            elif server in ready:
                piece = server.recv(1 << 20)
                if not piece:
                    break
                answered = True
                client.sendall(piece)
    print(trips, flush=True)


def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(listener.getsockname()[1], flush=True)
    while True:
        client = listener.accept()[0]
        threading.Thread(target=serve, args=(client,), daemon=True).start()


main()
