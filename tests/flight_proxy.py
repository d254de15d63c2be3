"""Proxies to servers on this host that let a flight through and then end the client's side.

flight_proxy.py SERVERS FLIGHT HOW: each of SERVERS, with commas between them, is a port of
127.0.0.1 or the path of a Unix socket. A flight is what the client says until the server answers.
Number FLIGHT, of all connections together, reaches its server, whose answer to it is read, and not
passed on: the client's connection ends by a FIN or an RST (HOW), and so does the server's. Later
flights are passed on. An answer that names the port of one of SERVERS, as a word, names its proxy's
port instead, so that a client which asks where a server is comes here again. (The same digits
within a longer number or an owner stay: renaming those would give the lock to another owner.)
Prints the ports that the proxies listen on, and "reached" when it has read that flight."""
import functools, re, select, socket, struct, sys, threading
from relay import accept_all, connected, listen

SERVERS, FLIGHT, HOW = sys.argv[1].split(","), int(sys.argv[2]), sys.argv[3]
flights = 0
proxies = {}  # the port of each server's, both as five bytes, which change no length


def carry(client, server):
    """Until one of them ends, or the flight has been answered. True in the latter case."""
    global flights
    asking = last = False
    while True:
        for source in select.select([client, server], [], [])[0]:
            try:
                piece = source.recv(1 << 20)
            except OSError:
                return False
            if source is server and last:
                return True
            if not piece:
                return False
            if source is client and not asking:
                flights += 1
                last = flights == FLIGHT
                if last:
                    print("reached", flush=True)
            asking = source is client
            (server if asking else client).sendall(piece if asking else renamed(piece))


def renamed(answer):
    for port, proxy in proxies.items():
        answer = re.sub(rb"\b%s\b" % port, proxy, answer)
    return answer


def serve(client, where):
    with connected(where) as server:
        if carry(client, server) and HOW == "RST":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()


def main():
    listeners = [listen() for _ in SERVERS]
    ports = [str(listener.getsockname()[1]) for listener in listeners]
    for where, port in zip(SERVERS, ports):
        if len(where) == len(port) and where.isdigit():
            proxies[where.encode()] = port.encode()
    for listener, where in zip(listeners, SERVERS):
        each = functools.partial(serve, where=where)
        threading.Thread(target=accept_all, args=(listener, each)).start()
    print(*ports, flush=True)


main()
