"""A lock as programs with other libraries keep it in Redis: other_lock.py KIND URL NAME WORD
DIRECTORY [ROUNDS].

Takes the lock as that library does, and waits as it does; notes WORD in DIRECTORY/log, makes the
file WORD.up there, and gives the lock back when there is a file WORD.go. Or takes it so many times
one after the other, and notes WORD twice each time, some ms apart. "redis-py" is that library
itself. The others' scripts are told in Redis' words as those libraries' sources have them, not
copied: "plain" is what redsync, node-redlock, redlock-rb and Spring without messages have in
common.
"""

import pathlib
import sys
import time
import uuid

import redis

DELETE_OWN = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"
LEASE_MS = 20000


class Plain:
    """A string that is there as long as an owner has the lock; waiters ask again."""

    def __init__(self, client, name):
        self.client, self.name, self.value = client, name, uuid.uuid4().hex
        self.prepare()

    def prepare(self):
        pass

    def take(self):
        return self.client.set(self.name, self.value, nx=True, px=LEASE_MS)

    def wait(self):
        time.sleep(0.1)

    def acquire(self):
        while not self.take():
            self.wait()

    def release(self):
        assert self.client.eval(DELETE_OWN, 1, self.name, self.value) == 1


class PythonRedisLock(Plain):
    """A release of lock:NAME pushes one element to lock-signal:NAME, and is waited for so."""

    def wait(self):
        self.client.blpop(["lock-signal:" + self.name.removeprefix("lock:")])

    def release(self):
        super().release()
        self.client.rpush("lock-signal:" + self.name.removeprefix("lock:"), 1)


class Listening(Plain):
    """A waiter hears a message, and takes no other way."""

    def prepare(self):
        self.messages = self.client.pubsub()
        self.messages.subscribe(self.channel())
        assert self.messages.get_message(timeout=60)["type"] == "subscribe"

    def wait(self):
        while (message := self.messages.get_message(timeout=120)) is None:
            pass
        assert message["data"] == self.message()


class Spring(Listening):
    """RedisLockRegistry with messages: REGISTRY:NAME."""

    def channel(self):
        return self.name.split(":")[0] + "-channel:" + self.name

    def message(self):
        return self.name.encode()


class Redisson(Listening):
    """A hash with a field for its holder, who may enter it several times."""

    TAKE = """
        if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
            return 0
        end
        redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
        return redis.call('PEXPIRE', KEYS[1], ARGV[2])"""
    LEAVE = """
        if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return -1 end
        if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then return 0 end
        redis.call('DEL', KEYS[1])
        redis.call('PUBLISH', ARGV[2], '0')
        return 1"""

    def channel(self):
        return "redisson_lock__channel:{%s}" % self.name

    def message(self):
        return b"0"

    def take(self):
        return self.client.eval(self.TAKE, 1, self.name, self.value + ":1", LEASE_MS)

    def release(self):
        left = self.client.eval(self.LEAVE, 1, self.name, self.value + ":1", self.channel())
        assert left == 1


KINDS = {
    "redis-py": lambda client, name: client.lock(name, timeout=LEASE_MS / 1000),
    "plain": Plain,
    "python-redis-lock": PythonRedisLock,
    "spring": Spring,
    "redisson": Redisson,
}


def note(directory, word):
    with open(directory / "log", "a", encoding="utf-8") as log:
        print(word, file=log)


def main(kind, url, name, word, directory, rounds="0"):
    directory = pathlib.Path(directory)
    lock = KINDS[kind](redis.Redis.from_url(url), name)
    (directory / f"{word}.asks").touch()
    for _ in range(int(rounds)):
        lock.acquire()
        note(directory, word)
        time.sleep(0.01)
        note(directory, word)
        lock.release()
        time.sleep(0.01)
    if rounds == "0":
        lock.acquire()
        note(directory, word)
        (directory / f"{word}.up").touch()
        while not (directory / f"{word}.go").exists():
            time.sleep(0.02)
        lock.release()


main(*sys.argv[1:])
