"""The application that celery_program.py and its worker share."""

import os

from celery import Celery

URL = os.environ["PROGRAM_REDIS_URL"]
app = Celery("celery_tasks", broker=URL, backend=URL)
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_default_queue="work",
)


@app.task
def add(left, right):
    return left + right


@app.task
def double(number):
    return 2 * number


@app.task(bind=True, max_retries=3)
def fail_twice(self):
    """Raises the first two times."""
    try:
        if self.request.retries < 2:
            raise RuntimeError(f"attempt {self.request.retries} is meant to fail")
    except RuntimeError as error:
        raise self.retry(exc=error, countdown=0)
    return self.request.retries


@app.task
def fail():
    raise ValueError("this task always fails")
