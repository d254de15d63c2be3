"""A RADIUS server (RFC 2865), which PostgreSQL may ask whether a password is right.

radius_server.py PORT PASSWORD-FILE: accepts the password in the file, of any user. The secret that
it shares with its clients is "secret"."""
import hashlib, socket, sys

ACCEPT, REJECT, USER_PASSWORD = 2, 3, 2
SECRET = b"secret"


def password_in(attributes, authenticator):
    """The password is hidden in blocks of 16 bytes, each by the one before it."""
    while attributes[0] != USER_PASSWORD:
        attributes = attributes[attributes[1]:]
    hidden, before, plain = attributes[2:attributes[1]], authenticator, b""
    for at in range(0, len(hidden), 16):
        mask = hashlib.md5(SECRET + before).digest()
        before = hidden[at:at + 16]
        plain += bytes(a ^ b for a, b in zip(before, mask))
    return plain.rstrip(b"\0").decode()


server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", int(sys.argv[1])))
while True:
    request, client = server.recvfrom(4096)
    authenticator = request[4:20]
    with open(sys.argv[2]) as file:
        right = password_in(request[20:], authenticator) == file.read().rstrip("\n")
    head = bytes([ACCEPT if right else REJECT, request[1], 0, 20])
    server.sendto(head + hashlib.md5(head + authenticator + SECRET).digest(), client)
