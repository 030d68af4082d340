"""Scripts through redis-py, its Lock, and `limits`: python_scripts.py PORT plain|cluster."""

import sys
import threading

import redis
from limits import RateLimitItemPerMinute, storage, strategies
from redis.cluster import ClusterNode, RedisCluster

from program_support import equal

KEYS = ["apple", "banana", "cherry", "damson"]


def connect(port, mode):
    if mode == "cluster":
        return RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", port)])
    return redis.Redis("127.0.0.1", port)


def scripts(client):
    swap = """
        if redis.call('GET', KEYS[1]) == ARGV[1] then
            redis.call('SET', KEYS[1], ARGV[2])
            return 1
        end
        return 0
    """
    plain = isinstance(client, redis.Redis)
    swap_script = client.register_script(swap) if plain else None
    for _ in range(3):
        for key in KEYS:
            client.set(key, "old")
            call = (lambda *args: swap_script(keys=[key], args=args)) if plain else (
                lambda *args: client.eval(swap, 1, key, *args)
            )
            equal(call("wrong", "x"), 0)
            equal(call("old", "new"), 1)
            equal(client.get(key), b"new")
        # Unknown again: redis-py loads it anew.
        client.script_flush()
    digest = client.script_load("return {KEYS[1], ARGV[1]}")
    equal(client.script_exists(digest), [True])
    equal(client.evalsha(digest, 1, "k", "v"), [b"k", b"v"])


def locks(client):
    for name in KEYS:
        lock = client.lock(name + ":lock", timeout=20)
        equal(lock.acquire(blocking=False), True)
        equal(client.lock(name + ":lock", timeout=20).acquire(blocking=False), False)
        lock.extend(10)
        equal(20 < client.ttl(name + ":lock") <= 30, True)
        lock.reacquire()
        lock.release()
        equal(client.exists(name + ":lock"), 0)
    client.set("counter", 0)

    def count():
        for _ in range(10):
            with client.lock("counter:lock", timeout=30, sleep=0.001):
                client.set("counter", int(client.get("counter")) + 1)

    threads = [threading.Thread(target=count) for _ in range(5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    equal(client.get("counter"), b"50")


def limits(port, mode):
    url = f"redis+cluster://127.0.0.1:{port}" if mode == "cluster" else f"redis://127.0.0.1:{port}"
    store = storage.storage_from_string(url)
    equal(store.check(), True)
    item = RateLimitItemPerMinute(5)
    for strategy in (
        strategies.FixedWindowRateLimiter,
        strategies.MovingWindowRateLimiter,
        strategies.SlidingWindowCounterRateLimiter,
    ):
        limiter = strategy(store)
        for user in KEYS:
            name = f"{strategy.__name__}:{user}"
            equal([limiter.hit(item, name) for _ in range(7)], [True] * 5 + [False] * 2)
            equal(limiter.test(item, name), False)
            equal(limiter.get_window_stats(item, name).remaining, 0)
            limiter.clear(item, name)
            equal(limiter.hit(item, name), True)


def main():
    port, mode = int(sys.argv[1]), sys.argv[2]
    client = connect(port, mode)
    scripts(client)
    locks(client)
    limits(port, mode)


main()
