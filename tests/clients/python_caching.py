"""Drives redis-py's client-side caching, plain or cluster-aware: python_caching.py PORT plain|cluster.

One client caches what it reads, another one changes it. What was cached must be read without asking the server, and
a change must be seen once the server has told of it.
"""

import sys
import time

import redis
from redis.cache import CacheConfig
from redis.cluster import ClusterNode, RedisCluster

KEYS = 200
PATIENCE_S = 10


def connect(port, mode, **options):
    if mode == "cluster":
        return RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", port)], protocol=3, **options)
    return redis.Redis("127.0.0.1", port, protocol=3, **options)


def equal(came, expected):
    if came != expected:
        raise AssertionError(f"{came!r} came, {expected!r} was expected")


def becomes(read, expected):
    """Reads until what is expected comes: a change is told a moment after it was made."""
    deadline = time.monotonic() + PATIENCE_S
    while (came := read()) != expected:
        if time.monotonic() > deadline:
            equal(came, expected)


def calls(statistics, command):
    """How often the server has executed a command."""
    return statistics.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"]


def served_from_the_cache(caching, other, statistics):
    for number in range(KEYS):
        other.set(f"cached:{number}", number)
    for number in range(KEYS):
        equal(caching.get(f"cached:{number}"), str(number).encode())
    before = calls(statistics, "get")
    for _ in range(5):
        for number in range(KEYS):
            equal(caching.get(f"cached:{number}"), str(number).encode())
    equal(calls(statistics, "get"), before)


def changes_are_seen(caching, other, statistics):
    before = calls(statistics, "get")
    for number in range(0, KEYS, 2):
        other.incr(f"cached:{number}")
    for number in range(0, KEYS, 2):
        becomes(lambda: caching.get(f"cached:{number}"), str(number + 1).encode())
    for number in range(1, KEYS, 2):
        equal(caching.get(f"cached:{number}"), str(number).encode())
    # What has not changed was not asked for again.
    equal(calls(statistics, "get") - before, KEYS // 2)
    other.delete("cached:0")
    becomes(lambda: caching.get("cached:0"), None)
    caching.set("cached:1", "its own change")
    becomes(lambda: caching.get("cached:1"), b"its own change")
    other.set("cached:2", "soon gone", px=50)
    becomes(lambda: caching.get("cached:2"), b"soon gone")
    becomes(lambda: caching.get("cached:2"), None)


def other_types(caching, other):
    other.hset("hash", mapping={"a": 1, "b": 2})
    equal(caching.hgetall("hash"), {b"a": b"1", b"b": b"2"})
    equal(caching.hget("hash", "a"), b"1")
    other.hset("hash", "a", 5)
    becomes(lambda: caching.hget("hash", "a"), b"5")
    becomes(lambda: caching.hgetall("hash"), {b"a": b"5", b"b": b"2"})
    equal(caching.mget("{many}a", "{many}b"), [None, None])
    other.mset({"{many}a": 1, "{many}b": 2})
    becomes(lambda: caching.mget("{many}a", "{many}b"), [b"1", b"2"])
    pipeline = other.pipeline(transaction=True)
    pipeline.rpush("{many}list", 1, 2)
    pipeline.incr("{many}a")
    equal(caching.lrange("{many}list", 0, -1), [])
    pipeline.execute()
    becomes(lambda: caching.lrange("{many}list", 0, -1), [b"1", b"2"])
    becomes(lambda: caching.mget("{many}a", "{many}b"), [b"2", b"2"])


def flushing(caching, other):
    other.flushall()
    for number in range(KEYS):
        becomes(lambda: caching.get(f"cached:{number}"), None)


def main():
    port, mode = int(sys.argv[1]), sys.argv[2]
    caching = connect(port, mode, cache_config=CacheConfig())
    other = connect(port, mode)
    statistics = redis.Redis("127.0.0.1", port)
    served_from_the_cache(caching, other, statistics)
    changes_are_seen(caching, other, statistics)
    other_types(caching, other)
    flushing(caching, other)
    for client in (caching, other, statistics):
        client.close()


main()
