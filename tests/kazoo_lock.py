"""A Python service's lock: kazoo_lock.py HOSTS PATH NAME DIRECTORY.

Takes the lock, notes NAME in DIRECTORY/log, makes the file NAME.up there, and gives the lock back
when there is a file NAME.go.
"""

import pathlib
import sys
import time

from kazoo.client import KazooClient

hosts, path, name, directory = sys.argv[1:]
directory = pathlib.Path(directory)
client = KazooClient(hosts=hosts, timeout=5)
client.start(timeout=60)
with client.Lock(path, extra_lock_patterns=["lock-"]):
    with open(directory / "log", "a", encoding="utf-8") as log:
        print(name, file=log)
    (directory / f"{name}.up").touch()
    while not (directory / f"{name}.go").exists():
        time.sleep(0.05)
client.stop()
