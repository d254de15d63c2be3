"""A proxy to a Redis server's Unix socket that ends each connection once it has carried the answer
to a script.

closing_proxy.py SOCKET: prints the port that it listens on, then the time in ms of each connection,
a line each."""
import select, socket, sys, threading, time

SCRIPT = b"EVAL"


def pass_on(server, client):
    """Passes on one answer; it has come when the server has nothing more to say for a moment."""
    while select.select([server], [], [], 0.005)[0]:
        piece = server.recv(65536)
        if not piece:
            break
        client.sendall(piece)


def serve(client):
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[1])
    asked = False
    with client, server:
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


def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(listener.getsockname()[1], flush=True)
    while True:
        client = listener.accept()[0]
        print(int(time.time() * 1000), flush=True)
        threading.Thread(target=serve, args=(client,), daemon=True).start()


main()
