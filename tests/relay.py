"""Sockets of relays and proxies: they listen on a port of their own, and pass connections on."""
import contextlib, socket, threading


def connected(where):
    """Connects to a port of 127.0.0.1, or to a Unix socket by its path."""
    if not where.isdigit():
        server = socket.socket(socket.AF_UNIX)
        server.connect(where)
        return server
    server = socket.create_connection(("127.0.0.1", int(where)))
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server


def accept_all(listener, serve):
    """Serves each connection in a thread, which ends the connection."""

    def run(client):
        with client, contextlib.suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            serve(client)

    while True:
        threading.Thread(target=run, args=listener.accept()[:1], daemon=True).start()


def listen():
    return socket.create_server(("127.0.0.1", 0), backlog=100)


def serve_forever(serve):
    """Prints the port that it listens on."""
    listener = listen()
    print(listener.getsockname()[1], flush=True)
    accept_all(listener, serve)


def carry(source, target, change=bytes):
    """Passes on what "source" says, changed, until one of them ends; then ends both."""
    with contextlib.suppress(OSError):
        while piece := source.recv(1 << 20):
            target.sendall(change(piece))
    for end in source, target:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def carry_both(client, server, change=bytes):
    """Passes on what both say; change: of what the client says."""
    threading.Thread(target=carry, args=(server, client), daemon=True).start()
    carry(client, server, change)
