"""Logging from inside logging, from places where nobody expects it: no deadlock, nothing lost."""

import gc
import logging
import os
import signal
import threading

import pytest

from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.upload.left_behind import open_stream, stream_folders
from noisescale.transport.upload.stream import Stream
from noisescale.transport.wire import RunRecord
from spooled_streams import deliver, make_stream, metric, numbers
from stub_server import Ledger


def on_disk(folder):
    """What another process finds."""
    [found] = stream_folders(folder)
    stream, _ = open_stream(found)
    ledger = Ledger()
    deliver(stream, ledger)
    ledger.check()
    return numbers(ledger, stream)


def test_a_signal_handler_may_log_at_any_moment(tmp_path):
    stream = make_stream(tmp_path)
    sent = []

    def handler(number, frame):
        sent.append(len(sent))
        stream.append(metric(10_000 + len(sent)))

    previous = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for number in range(3000):
            stream.append(metric(number))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    stream.end(5)

    found = on_disk(tmp_path)
    assert sent
    assert [number for number in found if number < 10_000] == list(range(3000))
    assert len(found) == 3000 + len(sent)


def test_a_signal_handler_may_log_while_the_first_record_makes_the_folder(tmp_path):
    def describe():
        stream.append(metric(7))
        return RunRecord({}, {})

    stream = Stream("run", DiskSpool([tmp_path]), describe)

    stream.append(metric(0))
    stream.end(5)

    assert sorted(on_disk(tmp_path)) == [0, 7]


@pytest.mark.slow
def test_a_destructor_may_log(tmp_path):
    stream = make_stream(tmp_path)

    class Logs:
        def __init__(self, number):
            self.number = number
            self.itself = self

        def __del__(self):
            stream.append(metric(self.number))

    for number in range(200):
        Logs(1000 + number)
        stream.append(metric(number))
        if number % 20 == 0:
            gc.collect()
    gc.collect()
    stream.end(5)

    assert sorted(on_disk(tmp_path)) == [*range(200), *range(1000, 1200)]


def test_a_logging_handler_may_log_when_the_spool_complains(tmp_path, monkeypatch):
    stream = make_stream(tmp_path)
    stream.append(metric(0))
    write, faults = os.write, [OSError(28, "No space left on device")]

    class Forwards(logging.Handler):
        def emit(self, record):
            stream.append(metric(100))

    handler = Forwards()
    logging.getLogger("noisescale").addHandler(handler)

    def write_or_fail(descriptor, data):
        if faults:
            raise faults.pop()
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", write_or_fail)
    try:
        stream.append(metric(1))
        stream.append(metric(2))
        stream.end(5)
    finally:
        logging.getLogger("noisescale").removeHandler(handler)

    assert sorted(on_disk(tmp_path)) == [0, 1, 2, 100]


def test_many_threads_log_at_once(tmp_path):
    stream = make_stream(tmp_path)

    def log(first):
        for number in range(first, first + 500):
            stream.append(metric(number))

    threads = [threading.Thread(target=log, args=(1000 * index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream.end(5)

    assert sorted(on_disk(tmp_path)) == [1000 * index + number for index in range(4) for number in range(500)]


def test_what_is_logged_after_the_end_is_on_disk_too(tmp_path):
    stream = make_stream(tmp_path)
    stream.append(metric(0))
    stream.end(5)

    stream.append(metric(1))

    assert on_disk(tmp_path) == [0, 1]
    stream.end(5)
