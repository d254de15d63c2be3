"""A relay to a ZooKeeper server on this host that lets no session be opened again: the server
begins a new one instead, as ClickHouse Keeper does.

forgetful_zookeeper.py PORT: to the server at PORT. Prints the port that it listens on, and then the
number of each session that begins."""
import asyncio
import struct
import sys

# A client's first words: their length, the protocol's version, the last change seen, the timeout,
# the session, and its password after the length of that.
BEFORE = struct.calcsize('>iiqi')
SESSION = struct.pack('>qi16x', 0, 16)
# The answer of the server: its length, the protocol's version, the timeout, the session.
ANSWER = struct.Struct('>iiiQ')


async def carry(reader, writer):
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
    except OSError:
        pass
    writer.close()


async def answer(reader, writer):
    try:
        first = await reader.readexactly(ANSWER.size)
        print(f'0x{ANSWER.unpack(first)[3]:x}', flush=True)
        writer.write(first)
    except asyncio.IncompleteReadError:
        pass
    await carry(reader, writer)


async def relay(reader, writer):
    server = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
    try:
        first = await reader.readexactly(BEFORE + len(SESSION))
    except asyncio.IncompleteReadError:
        first = b''
    server[1].write(first[:BEFORE] + SESSION if first else b'')
    await asyncio.gather(carry(reader, server[1]), answer(server[0], writer))


async def main():
    server = await asyncio.start_server(relay, '127.0.0.1', 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
