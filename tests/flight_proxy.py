"""A proxy to a server on this host that lets a flight through and then ends the client's side.

flight_proxy.py PORT FLIGHT HOW: the server listens on PORT of 127.0.0.1. A flight is what the
client says until the server answers. Number FLIGHT, of all connections together, reaches the
server, whose answer to it is read, and not passed on: the client's connection ends by a FIN or an
RST (HOW), and so does the server's. Later flights are passed on. Prints the port that it listens
on, and "ended" when it has done that."""
import select, socket, struct, sys, threading

PORT, FLIGHT, HOW = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
flights = 0


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
            asking = source is client
            (server if asking else client).sendall(piece)


def serve(client):
    server = socket.create_connection(("127.0.0.1", PORT))
    for end in client, server:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        ended = carry(client, server)
    except OSError:
        ended = False
    if ended and HOW == "RST":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    server.close()
    if ended:
        print("ended", flush=True)


def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(listener.getsockname()[1], flush=True)
    while True:
        client = listener.accept()[0]
        threading.Thread(target=serve, args=(client,), daemon=True).start()


main()
