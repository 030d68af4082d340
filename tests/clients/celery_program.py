"""Tasks with Celery, Redis being its broker and its result backend: celery_program.py PORT.

Tasks are enqueued, done by a `celery worker` in the background, retried when they fail, and their results read.
"""

import os
import sys

url = f"redis://127.0.0.1:{sys.argv[1]}/0"
os.environ["PROGRAM_REDIS_URL"] = url

import celery_tasks  # noqa: E402: it reads the address above
from celery import chain, group  # noqa: E402
from program_support import WAIT_S, equal, process  # noqa: E402


def main():
    waiting = celery_tasks.add.delay(1, 2)
    equal(waiting.state, "PENDING")
    command = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "--loglevel", "INFO"]
    with process([*command, "--concurrency", "2"], url):
        equal(waiting.get(timeout=WAIT_S), 3)
        equal(waiting.state, "SUCCESS")
        many = [celery_tasks.add.delay(number, number) for number in range(20)]
        equal([result.get(timeout=WAIT_S) for result in many], [2 * number for number in range(20)])
        equal(celery_tasks.fail_twice.delay().get(timeout=WAIT_S), 2)
        failed = celery_tasks.fail.delay()
        try:
            failed.get(timeout=WAIT_S)
        except ValueError as error:
            equal(str(error), "this task always fails")
        else:
            raise AssertionError("a task that fails gave a result")
        equal(failed.state, "FAILURE")
        equal(chain(celery_tasks.add.s(3, 4), celery_tasks.double.s())().get(timeout=WAIT_S), 14)
        equal(group(celery_tasks.double.s(number) for number in range(5))().get(timeout=WAIT_S), [0, 2, 4, 6, 8])
        later = celery_tasks.add.apply_async((5, 6), countdown=0.5)
        equal(later.get(timeout=WAIT_S), 11)
        later.forget()


main()
