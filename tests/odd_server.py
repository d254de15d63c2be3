"""A server whose greeting is a master's and whose answers to scripts are of the test's choice.

odd_server.py SOCKET KIND: listens on that Unix socket. Each connection and each script that it is
asked for is a line on standard output. KIND:
  soon      somebody holds it, whose lease ends in a ms, and the caller is next
  negative  nothing is granted for -2^63 ms
  huge      nothing is granted for 2^63-1 ms, and as many are ahead
  stale     whatever it is asked came too late
  calls     another owner holds it; listeners get a message again and again
  twice     each answer twice
  escapes   it has no keys, when it is asked for the first time; then an error with control
            characters
  other     the answer to another question
  long      an error of 2,000 characters, one of which begins a colour
  many      an array that claims to have 2^31-1 elements
  more      one that claims to have so many that there may be memory for them
  deep      1,000,000 arrays, one in the other"""
import os, socketserver, sys, threading, time

path, kind = sys.argv[1:]


def bulk(text):
    return b"$%d\r\n%s\r\n" % (len(text), text)


def number(value):
    return b":%d\r\n" % value


def array(*elements):
    return b"*%d\r\n" % len(elements) + b"".join(elements)


NOW = number(1700000000000)
QUEUED = [bulk(b"QUEUED"), NOW, bulk(b"q:1"), number(1), number(0), number(1), number(1)]
HOLDER = bulk(b"1700000000001 3000 7 somebody 1699999999000 x 0 h u 9 c l")
LEFT = {"soon": 1, "calls": 60000, "twice": 60000}
GRACE = {"negative": -(2**63), "huge": 2**63 - 1}
ANSWERS = {
    "auth": b"+OK\r\n",
    "client": b"+OK\r\n",
    "select": b"+OK\r\n",
    "multi": b"+OK\r\n",
    "role": array(bulk(b"master"), number(0), array()),
    "time": array(bulk(b"1700000000"), bulk(b"0")),
    "hmget": array(b"$-1\r\n"),
    "unsubscribe": array(bulk(b"unsubscribe"), b"$-1\r\n", number(0)),
}
ENDLESS = {
    "many": b"*2147483647\r\n",
    "more": b"*5000000\r\n",
    "deep": b"*1\r\n" * 1000000,
}
SCANS = [array(bulk(b"0"), array()), b"-ERR \x1b[31mred\x9b\r\n"]


LONG = b"-ERR \x1b[31mred" + b" word" * 396 + b" the end\r\n"


def script(words):
    if kind == "long":
        return LONG
    if kind in ENDLESS:
        return ENDLESS[kind]
    if len(words) < 12:  # a release: an acquisition has eleven arguments
        return array(bulk(b"RELEASED"), NOW)
    if kind in GRACE:
        return array(
            bulk(b"GRACE"), NOW, number(GRACE[kind]), bulk(b""), number(GRACE[kind]), number(1)
        )
    if kind == "stale":
        return array(bulk(b"STALE"), NOW)
    if kind == "other":
        return array(bulk(b"LOST"), NOW, number(1), number(0), number(0), bulk(b""))
    return array(*QUEUED, number(LEFT[kind]), HOLDER)


def say(word):
    os.write(1, word.encode() + b"\n")


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        say("connection")
        queued, calling = None, threading.Event()
        try:
            while line := self.rfile.readline():
                words = []
                for _ in range(int(line[1:])):
                    size = int(self.rfile.readline()[1:])
                    words.append(self.rfile.read(size + 2)[:-2].decode())
                verb = words[0].lower()
                if verb.startswith("eval"):
                    say("script")
                if verb == "unsubscribe":
                    calling.set()
                if verb == "multi":
                    queued = []
                    self.send(b"+OK\r\n")
                elif verb == "exec":
                    self.send(array(*queued))
                    queued = None
                    if kind == "calls":
                        calling = threading.Event()
                        threading.Thread(target=self.call, args=(calling,), daemon=True).start()
                elif queued is not None:
                    queued.append(
                        script(words) if verb.startswith("eval") else self.subscribed(words[1])
                    )
                    self.send(b"+QUEUED\r\n")
                elif verb == "scan":
                    self.send(SCANS.pop(0) if len(SCANS) > 1 else SCANS[0])
                else:
                    self.send(script(words) if verb.startswith("eval") else ANSWERS[verb], verb)
        except (BrokenPipeError, ConnectionResetError):
            pass
        calling.set()

    def subscribed(self, channel):
        self.channel = channel.encode()
        return array(bulk(b"subscribe"), bulk(self.channel), number(1))

    def call(self, end):
        while not end.is_set():
            try:
                self.request.sendall(array(bulk(b"message"), bulk(self.channel), bulk(b"")))
            except OSError:
                return
            time.sleep(0.001)

    def send(self, answer, verb=""):
        self.request.sendall(answer * (2 if kind == "twice" and verb.startswith("eval") else 1))


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 100


Server(path, Client).serve_forever()
