"""A server that takes itself for a Cluster's node and answers every script with errors of the
test's choice.

odd_node.py PORT ERROR...: each error once, the last one from then on. It says to have all slots.
Prints its requests, a word each."""
import socketserver, sys

port, errors = int(sys.argv[1]), sys.argv[2:]
SLOTS = b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" % port
ANSWERS = {
    "client": b"+OK\r\n",
    "asking": b"+OK\r\n",
    "role": b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
    "time": b"*2\r\n$1\r\n0\r\n$1\r\n0\r\n",
    "cluster": SLOTS,
}


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            words = []
            for _ in range(int(line[1:])):
                size = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(size + 2)[:-2].decode())
            print(words[0].lower(), flush=True)
            self.wfile.write(self.answer(words[0].lower()))

    def answer(self, verb):
        if verb in ANSWERS:
            return ANSWERS[verb]
        error = errors.pop(0) if len(errors) > 1 else errors[0]
        return b"-%s\r\n" % error.encode()


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


Server(("127.0.0.1", port), Client).serve_forever()
