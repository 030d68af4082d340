"""A Flask application that caches in Redis with Flask-Caching: flask_caching_program.py PORT."""

import sys

import redis
from flask import Flask, request
from flask_caching import Cache

from program_support import equal, wait_until

calls = {"page": 0, "price": 0, "search": 0}
port = int(sys.argv[1])
app = Flask(__name__)
cache = Cache(
    app,
    config={
        "CACHE_TYPE": "RedisCache",
        "CACHE_REDIS_URL": f"redis://127.0.0.1:{port}/2",
        "CACHE_KEY_PREFIX": "site:",
        "CACHE_DEFAULT_TIMEOUT": 100,
    },
)


@app.get("/page")
@cache.cached()
def page():
    calls["page"] += 1
    return f"page {calls['page']}"


@app.get("/search")
@cache.cached(query_string=True)
def search():
    calls["search"] += 1
    return f"{request.args['q']} {calls['search']}"


@cache.memoize(timeout=50)
def price(article, currency="eur"):
    calls["price"] += 1
    return {"article": article, "currency": currency, "call": calls["price"]}


def views():
    client = app.test_client()
    equal([client.get("/page").text for _ in range(3)], ["page 1"] * 3)
    equal(client.get("/search?q=a&x=1").text, "a 1")
    equal(client.get("/search?x=1&q=a").text, "a 1")
    equal(client.get("/search?q=b").text, "b 2")


def functions():
    equal(price(1), {"article": 1, "currency": "eur", "call": 1})
    equal(price(1), {"article": 1, "currency": "eur", "call": 1})
    equal(price(1, "usd")["call"], 2)
    cache.delete_memoized(price, 1)
    equal(price(1)["call"], 3)
    equal(price(1, "usd")["call"], 2)
    cache.delete_memoized(price)
    equal(price(1, "usd")["call"], 4)


def values(client):
    cache.set("name", {"nested": [1, 2, 3]}, timeout=30)
    equal(cache.get("name"), {"nested": [1, 2, 3]})
    equal(0 < client.ttl("site:name") <= 30, True)
    equal(cache.has("name"), True)
    equal(cache.add("name", "other"), False)
    equal(cache.add("fresh", "other"), True)
    cache.set_many({"one": 1, "two": "zwei", "three": None})
    equal(cache.get_many("one", "two", "missing"), [1, "zwei", None])
    equal(cache.get_dict("one", "two"), {"one": 1, "two": "zwei"})
    equal(cache.delete("one"), True)
    equal(bool(cache.delete_many("two", "three")), True)
    equal(cache.get_many("one", "two", "three"), [None, None, None])
    equal(cache.cache.inc("hits"), 1)
    equal(cache.cache.inc("hits", 4), 5)
    equal(cache.cache.dec("hits"), 4)
    cache.set("short", "x", timeout=1)
    wait_until("the value has gone", lambda: cache.get("short") is None)
    client.set("other:key", "stays")
    cache.clear()
    equal([key for key in client.scan_iter("site:*")], [])
    equal(client.get("other:key"), b"stays")


def main():
    client = redis.Redis("127.0.0.1", port, db=2)
    with app.app_context():
        views()
        functions()
        values(client)
        equal(app.test_client().get("/page").text, "page 2")


main()
