"""A proxy to a Redis server's Unix socket that has lost an answer, and says so with an error, as
proxies do: what was asked is done.

lying_proxy.py SOCKET WORD [TIMES [EACH WHEN]]: prints the port that it listens on. In place of the
first answers of a script that begin with WORD, or of each EACHth one while the file WHEN exists,
comes "ERR Connection timed out", and a line is printed."""
import os, re, sys, threading
from relay import carry, connected, serve_forever

ANSWER = re.compile(rb"(\*[23]\r\n)?\*\d\r\n\$\d+\r\n%s\r\n" % sys.argv[2].encode())
left = int((sys.argv[3:] or ["1"])[0])
each, when = int((sys.argv[4:] or ["1"])[0]), (sys.argv[5:] or ["/"])[0]
answers = 0


def end_of(piece, at):
    """Where the reply that begins there ends."""
    line = piece.index(b"\r\n", at) + 2
    kind, number = piece[at : at + 1], piece[at + 1 : line - 2]
    if kind == b"$":
        return line if number == b"-1" else line + int(number) + 2
    if kind == b"*":
        for _ in range(int(number)):
            line = end_of(piece, line)
    return line


def changed(piece):
    """An answer comes in one piece: it is short."""
    global left, answers
    found = ANSWER.search(piece)
    answers += bool(found)
    if not left or not found or answers % each or not os.path.exists(when):
        return piece
    left -= 1
    print("lost", flush=True)
    rest = piece[end_of(piece, found.start()) :]
    return piece[: found.start()] + b"-ERR Connection timed out\r\n" + rest


def serve(client):
    with connected(sys.argv[1]) as server:
        threading.Thread(target=carry, args=(client, server), daemon=True).start()
        carry(server, client, changed)


serve_forever(serve)
