"""A thread that reads a run while the training logs: each step counts once, and what is read is whole."""

import os
import sys
import threading

import pytest
import torch

import noisescale
from noisescale.track.one_at_a_time import one_at_a_time

NUM_STEPS = 600
NUM_STEPS_OF_A_WATCHED_RUN = 40


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    often, before = 1e-6, sys.getswitchinterval()
    sys.setswitchinterval(often)
    run = noisescale.init(mode="offline", delivery=noisescale.Delivery(strict=True))
    yield run
    sys.setswitchinterval(before)
    run.finish()


def log_norms(run):
    run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=10.0, big_sq_norm=2.0, loss=1.0, lr=0.1)


def read_while(do, read):
    """What was read by another thread until `do` had ended."""
    found, is_over = [], threading.Event()

    def read_on():
        while not is_over.is_set():
            found.append(read())

    reader = threading.Thread(target=read_on)
    reader.start()
    try:
        do()
    finally:
        is_over.set()
        reader.join()
    return found


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda run: run.noise_scale(), id="noise scale"),
        pytest.param(lambda run: run.recommendation(), id="recommendation"),
        pytest.param(lambda run: run.learning_rate(), id="learning rate"),
        pytest.param(lambda run: run.standing(), id="standing"),
    ],
)
def test_steps_that_are_logged_while_another_thread_reads_count_once(run, read):
    def train():
        for _ in range(NUM_STEPS):
            log_norms(run)

    found = read_while(train, lambda: read(run))

    log = run._main._log
    assert found
    assert (log.recent.num_updates, log.history.num_updates) == (NUM_STEPS, NUM_STEPS)


def test_a_history_that_is_read_says_the_same_number_of_steps_in_all_its_parts(run):
    """The stretches' own counts add up to the whole, and it does not go on while it is read."""

    def train():
        for _ in range(NUM_STEPS):
            log_norms(run)

    def read():
        history = run._main.measured().history
        return history.num_updates, sum(one.num_updates for one in history._stretches)

    found = read_while(train, read)

    assert all(number == in_parts for number, in_parts in found)
    assert len(set(found)) > 1


def test_a_model_that_is_watched_while_another_thread_reads_counts_each_step_once(run):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run.watch(model, optimizer)

    def train():
        for _ in range(NUM_STEPS_OF_A_WATCHED_RUN):
            for _ in range(2):
                (model(torch.randn(8, 4)).square().mean() / 2).backward()
            run.log_gradients()
            optimizer.step()
            optimizer.zero_grad()

    read_while(train, run.noise_scale)

    run.noise_scale()
    assert run._main._log.history.num_updates == NUM_STEPS_OF_A_WATCHED_RUN


def test_a_child_that_forks_while_another_thread_reads_logs_on():
    class Reader:
        def __init__(self):
            self.lock = one_at_a_time(self)

    reader, holds, may_end = Reader(), threading.Event(), threading.Event()

    def hold():
        with reader.lock:
            holds.set()
            may_end.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(0 if reader.lock.acquire(timeout=5) else 1)
    _, status = os.waitpid(child, 0)
    may_end.set()
    thread.join()

    assert status == 0
