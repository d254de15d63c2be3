"""rlock over databases and ZooKeeper, beside itself over Redis: a run, and a hand-over. The servers
are those of the chaos run, without what it does to them."""
import os
import sys

import alone
import together
from contestants import rlock

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "tests"))


def deployments(build):
    """Of each store: a name, how it is started, and the URL that leads straight to it."""
    os.environ["RLOCK_TEST_TOOLS"] = f"{build}/tests"  # which these look at
    from chaos_databases import DATABASES
    from chaos_zookeeper import ZOOKEEPER

    def database_url(store):
        return f"{store.scheme}://locker:p@127.0.0.1:{store.nodes[0].port}/locks"

    class Straight(ZOOKEEPER["zookeeper"]):
        def lead_astray(self, ports):
            pass

    for store in DATABASES.values():
        yield store.name, store, database_url
    yield "ZooKeeper, 3 servers", Straight, lambda store: store.url


def databases(samples, build, place, redis, plan, rounds):
    started = []
    lock = rlock("rlock", f"redis://127.0.0.1:{redis.port}")
    lock.server = redis
    everyone = [lock]
    try:
        for name, store, url in deployments(build):
            if store.missing:
                samples.note(f"rlock over {name}: left out: {store.missing}")
                continue
            started.append(store(f"{place}/{name.split(',')[0]}"))
            everyone.append(rlock(f"rlock, {name}", url(started[-1])))
        alone.compare(samples, "run", [(who.name, "", who) for who in everyone], rounds)
        together.contention(samples, build, place, everyone, plan)
    finally:
        for store in started:
            store.stop()
