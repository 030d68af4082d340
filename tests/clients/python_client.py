"""Drives redis-py, plain or cluster-aware: python_client.py PORT plain|cluster.

Works as an application would and raises at the first wrong answer.
"""

import os
import sys

import redis
from redis.cluster import ClusterNode, RedisCluster


def connect(port, mode, protocol):
    if mode == "cluster":
        return RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", port)], protocol=protocol)
    return redis.Redis("127.0.0.1", port, protocol=protocol)


def equal(came, expected):
    if came != expected:
        raise AssertionError(f"{came!r} came, {expected!r} was expected")


def strings(client):
    equal(client.get("missing"), None)
    equal(client.set("greeting", "hello"), True)
    equal(client.get("greeting"), b"hello")
    equal(client.set("greeting", "other", nx=True), None)
    equal(client.append("greeting", " world"), 11)
    equal(client.incrby("counter", 41), 41)
    equal(client.incr("counter"), 42)
    equal(client.incrbyfloat("float", 1.5), 1.5)
    binary = bytes(range(256)) * 50
    client.set("binary", binary)
    equal(client.get("binary"), binary)
    client.set("deadline", "x", ex=100)
    equal(0 < client.ttl("deadline") <= 100, True)
    equal(client.expire("counter", 1000), True)
    equal(client.persist("counter"), True)
    client.mset({"{many}a": 1, "{many}b": 2})
    equal(client.mget("{many}a", "{many}b", "{many}c"), [b"1", b"2", None])
    equal(client.delete("deadline"), 1)
    equal(client.exists("deadline"), 0)


def collections(client):
    equal(client.hset("hash", mapping={"a": 1, "b": 2}), 2)
    equal(client.hgetall("hash"), {b"a": b"1", b"b": b"2"})
    equal(client.hincrby("hash", "a", 5), 6)
    equal(client.rpush("list", 1, 2, 3), 3)
    equal(client.lrange("list", 0, -1), [b"1", b"2", b"3"])
    equal(client.lpop("list", 2), [b"1", b"2"])
    equal(client.sadd("set", "x", "y"), 2)
    equal(client.smembers("set"), {b"x", b"y"})
    equal(client.sismember("set", "x"), 1)
    equal(client.zadd("zset", {"one": 1, "two": 2.5}), 2)
    pairs = [tuple(pair) for pair in client.zrange("zset", 0, -1, withscores=True)]
    equal(pairs, [(b"one", 1.0), (b"two", 2.5)])
    equal(client.zscore("zset", "two"), 2.5)
    equal(dict(client.hscan_iter("hash")), {b"a": b"6", b"b": b"2"})
    equal(client.type("zset"), b"zset")
    try:
        client.lpush("zset", "x")
    except redis.ResponseError as error:
        equal("WRONGTYPE" in str(error) or "wrong kind" in str(error), True)
    else:
        raise AssertionError("LPUSH on a sorted set was accepted")


def many_keys(client):
    for number in range(500):
        client.set(f"many:{number}", number)
    for number in range(500):
        equal(client.get(f"many:{number}"), str(number).encode())
    pipeline = client.pipeline(transaction=False)
    for number in range(1000):
        pipeline.set(f"pipelined:{number}", number)
        pipeline.get(f"pipelined:{number}")
    replies = pipeline.execute()
    equal(replies[1::2], [str(number).encode() for number in range(1000)])
    equal(all(replies[0::2]), True)
    # Against cluster-aware clients every port speaks for the whole process: a key may be named by each.
    found = {key for key in client.scan_iter("pipelined:*", count=100)}
    equal(len(found), 1000)


def native(client):
    if isinstance(client, RedisCluster):
        return
    client.set("{user}wallet", 50)
    equal(client.execute_command("TRANSFER", "{user}wallet", "{user}escrow", 30), [20, 30])
    equal(client.execute_command("TRANSFER", "{user}wallet", "{user}escrow", 30), None)


def main():
    port, mode = int(sys.argv[1]), sys.argv[2]
    for protocol in (2, 3):
        client = connect(port, mode, protocol)
        client.flushall()
        strings(client)
        collections(client)
        many_keys(client)
        if os.environ.get("RUVIO_TEST_SERVER_COMMAND") is None:
            native(client)
        client.close()


main()
