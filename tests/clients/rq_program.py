"""Queues of jobs with rq: rq_program.py PORT.

Jobs are enqueued, done by `rq worker` processes in the background, retried when they fail, and their results read.
"""

import sys

import redis
from rq import Queue, Retry
from rq.job import Job
from rq.registry import FailedJobRegistry, FinishedJobRegistry
from rq.worker import Worker

import rq_jobs
from program_support import equal, process, wait_until


def finished(job):
    """Waits for a job to succeed and gives its result, which rq may store after the state."""
    wait_until(f"job {job.id}", lambda: job.get_status(refresh=True) == "finished")
    return wait_until(f"the result of job {job.id}", lambda: [job.result] if job.result is not None else None)[0]


def results(queue):
    job = queue.enqueue(rq_jobs.add, 20, 22)
    equal(finished(job), 42)
    equal(Job.fetch(job.id, connection=queue.connection).result, 42)
    many = queue.enqueue_many([Queue.prepare_data(rq_jobs.add, (number, number)) for number in range(10)])
    for number, job in enumerate(many):
        equal(finished(job), 2 * number)
    registry = FinishedJobRegistry(queue=queue)
    wait_until("all jobs are registered", lambda: {job.id for job in many} <= set(registry.get_job_ids()))


def retries(queue):
    job = queue.enqueue(rq_jobs.fail_twice, "attempts", retry=Retry(max=3))
    equal(finished(job), 3)
    equal(Job.fetch(job.id, connection=queue.connection).retries_left, 1)
    equal(queue.connection.get("attempts"), b"3")


def failures(queue):
    registry = FailedJobRegistry(queue=queue)
    job = queue.enqueue(rq_jobs.fail, "failures", retry=Retry(max=1))
    wait_until("the job is given up", lambda: job.get_status(refresh=True) == "failed")
    wait_until("the failed job is registered", lambda: job.id in registry.get_job_ids())
    equal("this job always fails" in Job.fetch(job.id, connection=queue.connection).exc_info, True)
    equal(queue.connection.get("failures"), b"2")
    registry.requeue(job.id)
    wait_until("the job is done again", lambda: queue.connection.get("failures") == b"3")


def order(queue):
    first = queue.enqueue(rq_jobs.note, "notes", "first")
    second = queue.enqueue(rq_jobs.note, "notes", "second", depends_on=first)
    third = queue.enqueue(rq_jobs.note, "notes", "third", depends_on=[first, second])
    finished(third)
    equal(queue.connection.lrange("notes", 0, -1), [b"first", b"second", b"third"])


def main():
    url = f"redis://127.0.0.1:{sys.argv[1]}/0"
    connection = redis.Redis.from_url(url)
    queue = Queue("work", connection=connection)
    waiting = queue.enqueue(rq_jobs.add, 1, 2)
    equal(queue.get_job_ids(), [waiting.id])
    equal(waiting.get_status(), "queued")
    command = [sys.executable, "-m", "rq.cli", "worker", "--url", url, "urgent", "work"]
    with process(command, url) as worker:
        finished(waiting)
        for part in (results, retries, failures, order):
            part(queue)
        equal(Worker.count(connection=connection), 1)
        urgent = Queue("urgent", connection=connection).enqueue(rq_jobs.add, 3, 4)
        finished(urgent)
        worker.terminate()
        equal(worker.wait(30), 0)
    equal(Worker.count(connection=connection), 0)


main()
