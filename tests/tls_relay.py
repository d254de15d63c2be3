"""Takes TLS connections and passes what they carry on in the clear, for a server that has no TLS.

tls_relay.py CERTIFICATE KEY PORT: prints the port that it listens on; the server listens on PORT of
127.0.0.1."""
import socket, ssl, sys, threading


def carry(source, target):
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
    except OSError:
        pass  # the other direction has ended
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(context, client):
    try:
        client = context.wrap_socket(client, server_side=True)
    except OSError:
        return  # the client does not trust the certificate
    server = socket.create_connection(("127.0.0.1", int(sys.argv[3])))
    back = threading.Thread(target=carry, args=(server, client), daemon=True)
    back.start()
    carry(client, server)


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(listener.getsockname()[1], flush=True)
    while True:
        client = listener.accept()[0]
        threading.Thread(target=serve, args=(context, client), daemon=True).start()


main()
