"""A registered script of redis-py across a restart of the server: script_restart.py PORT.

The program writes `ready` once the script is known, and goes on when its input ends: the server has forgotten the script
then, and redis-py loads it anew.
"""

import sys

import redis

from program_support import equal, wait_until

KEYS = ["apple", "banana", "cherry", "damson"]


def answers(client):
    try:
        return client.ping()
    except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
        return False


def main():
    client = redis.Redis("127.0.0.1", int(sys.argv[1]))
    append = client.register_script("redis.call('APPEND', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])")
    for key in KEYS:
        equal(append(keys=[key], args=["a"]), b"a")
    print("ready", flush=True)
    sys.stdin.read()
    wait_until("the server answers again", lambda: answers(client))
    equal(client.script_exists(append.sha), [False])
    for key in KEYS:
        equal(append(keys=[key], args=["b"]), b"ab")
    equal(client.script_exists(append.sha), [True])


main()
