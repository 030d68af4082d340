"""What the workers of rq_program.py run."""

import os

import redis


def connection():
    return redis.Redis.from_url(os.environ["PROGRAM_REDIS_URL"])


def add(left, right):
    return left + right


def fail_twice(key):
    """Raises the first two times, as counted in `key`."""
    attempt = connection().incr(key)
    if attempt < 3:
        raise RuntimeError(f"attempt {attempt} is meant to fail")
    return attempt


def fail(key):
    """Counts itself in `key` and raises."""
    connection().incr(key)
    raise RuntimeError("this job always fails")


def note(key, value):
    connection().rpush(key, value)
    return value
