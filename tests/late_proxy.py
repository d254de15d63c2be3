"""A proxy to a server that keeps what a client says, and delivers it late.

late_proxy.py SERVER KEEP LATE [NUMBER]: to the Unix socket or the port SERVER. Prints the port that
it listens on. The file KEEP says "HOW WORD": the first thing with that word is kept that the first
client says, or the one with that number, and HOW the client is treated then: "reset" or "silence";
or, as a number, which rlock is stopped, and its agent killed. When the file LATE exists, the server
gets what was kept. Says "kept", and "arrived" when the server has answered, or has ended the
connection. Other clients are served as if there were no proxy."""
import contextlib, os, select, signal, socket, struct, subprocess, sys, time
from relay import carry_both, connected, serve_forever

SERVER, KEEP, LATE = sys.argv[1:4]
NUMBER = int(sys.argv[4]) if len(sys.argv) > 4 else 1
clients = 0


def asked_for():
    try:
        with open(KEEP) as file:
            return file.read().split()
    except FileNotFoundError:
        return "", ""


def treat(client, what):
    if what == "reset":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    elif what != "silence":
        os.kill(int(what), signal.SIGSTOP)
        agent = subprocess.check_output(["pgrep", "-P", what, "-x", "rlock-agent"])
        os.kill(int(agent), signal.SIGKILL)
    print("kept", flush=True)


def serve_late(client, server):
    while True:
        for source in select.select([client, server], [], [])[0]:
            piece, (what, word) = source.recv(1 << 20), asked_for()
            if not piece:
                return
            if source is server or not what or word.encode() not in piece:
                (server if source is client else client).sendall(piece)
                continue
            treat(client, what)
            while not os.path.exists(LATE):
                time.sleep(0.01)
            with contextlib.suppress(OSError):
                while select.select([server], [], [], 0)[0] and server.recv(1 << 20):
                    pass  # a message
                server.sendall(piece)
                server.recv(1 << 20)
            print("arrived", flush=True)
            return


def serve(client):
    global clients
    clients += 1
    with connected(SERVER) as server:
        if clients == NUMBER:
            serve_late(client, server)
        else:
            carry_both(client, server)


serve_forever(serve)
