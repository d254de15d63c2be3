"""Takes TLS connections and passes what they carry on in the clear, for a server that has no TLS.

tls_relay.py CERTIFICATE KEY PORT: prints the port that it listens on; the server listens on PORT of
127.0.0.1."""
import ssl, sys
from relay import carry_both, connected, serve_forever

CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
CONTEXT.load_cert_chain(sys.argv[1], sys.argv[2])


def serve(client):
    # An OSError where the client does not trust the certificate.
    carry_both(CONTEXT.wrap_socket(client, server_side=True), connected(sys.argv[3]))


serve_forever(serve)
