"""However long a run: no memory grows, no hook stays, and the training is the same to the last bit."""

import gc
import sys
from collections import Counter

import pytest
import torch
from torch import nn

from client_runs import KeptRecords, make_batch, make_model
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale.track import promise_log
from noisescale.window import run_history
from quick import quick_or_slow

MODES = {
    "micro-batches": {},
    "every second step": {"every": 2},
    "budget": {"overhead": 0.5},
    "examples": {"small_batches": "per_example"},
    "proxy": {"small_batches": "layer_norm_proxy"},
    "split": {"split": 2},
    "kinds": {"kinds": ("adam", "sign", "spectral")},
    "scaler": {"scaler": torch.amp.GradScaler("cpu", enabled=False)},
}


QUICK = ("micro-batches", "examples", "kinds")


class Forgetful(KeptRecords):
    """Takes records and forgets them."""

    def send(self, record):
        pass


def make_run():
    return Run(Config(strict=True, group_seconds=0.0), RunDescription(), lambda run_id, describe: Forgetful(describe))


class Loop:
    def __init__(self):
        self.model = make_model()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.batches = [
            list(zip(*(part.split(4) for part in make_batch(8, seed=seed)), strict=True)) for seed in range(8)
        ]

    def steps(self, number, run=None):
        for index in range(number):
            for x, y in self.batches[index % 8]:
                loss = nn.functional.cross_entropy(self.model(x), y) / 2
                loss.backward()
            if run is not None:
                run.log_gradients(loss=loss)
            self.optimizer.step()
            self.optimizer.zero_grad()

    def hooks(self):
        modules = list(self.model.modules())
        found = [hook for p in self.model.parameters() for hook in (p._backward_hooks or {})]
        for module in modules:
            found += [*module._forward_hooks, *module._forward_pre_hooks, *module._backward_hooks]
            found += [*module._backward_pre_hooks, *module._forward_hooks_with_kwargs]
        return [*found, *self.optimizer._optimizer_step_post_hooks, *self.optimizer._optimizer_step_pre_hooks]


def objects_held():
    gc.collect()
    return Counter(type(one) for one in gc.get_objects())


def growth(do, times):
    """Blocks of memory that Python holds after each call beyond those before it, once all is warm; objects by type."""
    do()
    objects_held()  # fills caches of its own
    objects_before = objects_held()
    blocks_before = sys.getallocatedblocks()
    for _ in range(times):
        do()
    gc.collect()
    num_blocks = sys.getallocatedblocks() - blocks_before
    objects = objects_held()
    objects.subtract(objects_before)
    return num_blocks / times, {kind: n / times for kind, n in objects.items() if n}


@pytest.mark.slow
@pytest.mark.parametrize("mode", [*MODES, "large model"])
def test_nothing_grows_over_five_thousand_steps(mode, request, monkeypatch):
    # lists that are filled and halved again and again hold up to twice as much at one moment as at another, and how
    # fast they fill hangs on what measuring costs on this machine: short ones, their difference is none to speak of
    monkeypatch.setattr(promise_log, "MOST_MOMENTS", 16)
    monkeypatch.setattr(run_history, "MAX_STRETCHES", 32)
    if mode == "large model":
        request.getfixturevalue("at_once")
    loop, run = Loop(), make_run()
    run.watch(loop.model, loop.optimizer, **MODES.get(mode, {}))

    def train():
        loop.steps(2560, run)
        run.noise_scale()  # steps of a small model are held for a moment

    num_blocks, objects = growth(train, 1)

    assert num_blocks < 512  # a fifth of one a step
    # one in fifty steps: what is done once in a while by a process of many tests, such as a first import, is less
    assert sum(objects.values()) < 50, objects
    run.finish()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "mode", [mode if mode == "micro-batches" else pytest.param(mode, marks=pytest.mark.slow) for mode in MODES]
)
def test_watching_again_and_again_leaves_nothing(mode):
    loop, run = Loop(), make_run()
    before = loop.hooks(), list(loop.model.state_dict()), sorted(vars(loop.model))

    def watch_and_unwatch():
        run.watch(loop.model, loop.optimizer, **MODES[mode])
        loop.steps(2, run)
        run.unwatch()
        run.noise_scale()  # steps of a small model are held for a moment

    num_blocks, objects = growth(watch_and_unwatch, 12)

    assert num_blocks < 60  # a window and a history that are not full yet grow by some for each of the two steps
    assert sum(objects.values()) < 10, objects
    assert (loop.hooks(), list(loop.model.state_dict()), sorted(vars(loop.model))) == before


@pytest.mark.parametrize("mode", quick_or_slow([mode for mode in MODES if mode != "split"], QUICK))
def test_weights_after_a_hundred_steps_are_the_same_to_the_last_bit(mode):
    watched, plain, run = Loop(), Loop(), make_run()
    run.watch(watched.model, watched.optimizer, **MODES[mode])

    watched.steps(100, run)
    plain.steps(100)

    for ours, theirs in zip(watched.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
