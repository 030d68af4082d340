"""What the programs of this folder share: processes beside them, and waiting."""

import contextlib
import os
import subprocess
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
WAIT_S = 40


def equal(came, expected):
    if came != expected:
        raise AssertionError(f"{came!r} came, {expected!r} was expected")


def wait_until(what, condition):
    """Waits until `condition` gives something true, and returns that."""
    deadline = time.monotonic() + WAIT_S
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"waited too long: {what}")
        time.sleep(0.02)


@contextlib.contextmanager
def process(command, url):
    """Runs a program in the background, and ends it afterwards. What it wrote is shown when the test fails."""
    with tempfile.TemporaryFile() as log:
        environment = {**os.environ, "PROGRAM_REDIS_URL": url, "PYTHONPATH": FOLDER, "PYTHONDONTWRITEBYTECODE": "1"}
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        try:
            yield child
        except BaseException:
            log.seek(0)
            print(f"{command} wrote:\n{log.read().decode(errors='replace')}")
            raise
        finally:
            if child.poll() is None:
                child.terminate()
            try:
                child.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
