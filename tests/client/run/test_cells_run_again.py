"""A cell of a notebook runs again: a second init() or watch() in one process does what the person means."""

import sys

import pytest
import torch
from torch import nn

import noisescale
from client_runs import make_kept_run
from noisescale.run import active_run


@pytest.fixture(autouse=True)
def no_active_run(monkeypatch, tmp_path):
    monkeypatch.setattr(active_run, "_active", [])
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.setenv("NOISESCALE_MODE", "offline")
    monkeypatch.setenv("NOISESCALE_STRICT", "1")
    yield
    noisescale.finish(timeout_seconds=0.1)


def make_training(seed=0):
    torch.manual_seed(seed)
    model = nn.Linear(3, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def train(of, model, optimizer, num_steps=3):
    for _ in range(num_steps):
        optimizer.zero_grad()
        for _ in range(2):
            (model(torch.randn(4, 3)).square().mean() / 2).backward()
        of.log_gradients(batch_size=8)
        optimizer.step()


def test_the_same_model_watched_again_goes_on_in_its_run():
    model, optimizer = make_training()
    noisescale.watch(model, optimizer)
    train(noisescale, model, optimizer)
    first = active_run.active()

    noisescale.watch(model, optimizer)
    train(noisescale, model, optimizer)

    assert active_run.active() is first
    assert (first.newest_step, first.noise_scale().num_updates) == (5, 6)


def test_a_new_model_begins_a_new_run_of_the_same_description():
    noisescale.init(project="cells", task="again", name="mine")
    model, optimizer = make_training()
    noisescale.watch(model, optimizer)
    train(noisescale, model, optimizer)
    first = active_run.active()

    noisescale.watch(*(training := make_training(1)))
    train(noisescale, *training)

    second = active_run.active()
    assert first.is_finished
    assert second.id != first.id
    assert (second.description.task, second.description.name) == ("again", "mine")
    assert (second.newest_step, second.noise_scale().num_updates) == (2, 3)


def test_a_new_model_in_a_run_of_ones_own_is_measured_by_itself(caplog):
    caplog.set_level("INFO", "noisescale")
    run, kept = make_kept_run()
    model, optimizer = make_training()
    run.watch(model, optimizer)
    train(run, model, optimizer, 4)

    other, its_optimizer = make_training(1)
    run.watch(other, its_optimizer)
    train(run, other, its_optimizer, 3)

    assert [row.step for row in kept.rows()] == list(range(7))
    assert run.noise_scale().num_updates == 3
    assert any("measuring another Linear from here on" in record.message for record in caplog.records)


def test_a_new_optimizer_of_the_same_model_is_the_same_training():
    run, _ = make_kept_run()
    model, optimizer = make_training()
    run.watch(model, optimizer)
    train(run, model, optimizer)

    run.watch(model, again := torch.optim.SGD(model.parameters(), lr=0.01))
    train(run, model, again)

    assert run.noise_scale().num_updates == 6


def test_a_new_run_that_watches_the_same_model_ends_the_one_before():
    model, optimizer = make_training()
    first = noisescale.init()
    first.watch(model, optimizer)
    train(first, model, optimizer)

    second = noisescale.init()
    second.watch(model, optimizer)
    train(second, model, optimizer)

    assert first.is_finished
    assert not first.is_watching
    assert second.noise_scale().num_updates == 3


def test_two_runs_may_watch_one_model_from_the_start():
    model, optimizer = make_training()
    one, _ = make_kept_run()
    other, _ = make_kept_run()
    one.watch(model, optimizer)
    other.watch(model, optimizer)

    train(one, model, optimizer)

    assert not one.is_finished


def test_init_in_an_interactive_session_finishes_the_run_before(monkeypatch):
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    first = noisescale.init()

    noisescale.init()

    assert first.is_finished


def test_init_in_a_script_leaves_other_runs_alone():
    first = noisescale.init()

    noisescale.init()

    assert not first.is_finished
    first.finish(timeout_seconds=0.1)
