"""The functions of `noisescale` and the methods of `Run`: one surface, written once."""

import inspect

import pytest
import torch
from torch import nn

import noisescale
from noisescale.run import active_run
from noisescale.run.run import Run

OF_A_RUN_ALONE = {
    "leave_out", "logged_metrics", "newest_step", "description", "is_watching", "url", "has_trained", "is_over_for",
    "successor", "standing",
}  # fmt: skip
"""What Run shows to the parts around it; a training loop types none of it."""

METHODS = sorted(name for name in dir(Run) if not name.startswith("_") and name not in OF_A_RUN_ALONE)


@pytest.fixture
def no_active_run(monkeypatch, tmp_path):
    monkeypatch.setattr(active_run, "_active", [])
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.setenv("NOISESCALE_MODE", "offline")
    monkeypatch.setenv("NOISESCALE_STRICT", "1")


@pytest.mark.parametrize("name", METHODS)
def test_each_method_of_run_is_a_function_of_the_module_with_the_same_arguments(name):
    method = inspect.signature(getattr(Run, name))
    without_self = method.replace(parameters=list(method.parameters.values())[1:])

    assert inspect.signature(getattr(noisescale, name)) == without_self
    assert inspect.getdoc(getattr(noisescale, name))


def test_the_module_has_no_further_function_of_the_active_run():
    functions = {name for name in noisescale.__all__ if getattr(noisescale, name).__class__.__name__ == "function"}

    assert functions - set(METHODS) == {"init", "recommend", "branch", "follow", "learning_rate_range", "sweep"}


def test_three_lines_may_add_micro_batches_up_in_32_bit(no_active_run):
    """README's `watch(..., accumulate="fp32")`."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    noisescale.watch(model, optimizer, arithmetic=noisescale.Arithmetic(accumulate="fp32", fused_norm_layers=False))
    for _ in range(2):
        model(torch.randn(4, 3)).square().mean().backward()
    noisescale.log_gradients(batch_size=8)

    assert active_run.active().newest_step == 0
    assert active_run.active().faults.count == 0
    noisescale.finish(timeout_seconds=0.1)


def test_finish_of_the_module_waits_as_long_as_it_is_told_and_makes_no_run(no_active_run):
    noisescale.finish(timeout_seconds=0.1)

    assert active_run.current() is None


@pytest.mark.parametrize("name", ["watch", "log_norms", "unwatch"])
def test_a_call_that_fits_nothing_says_so_before_a_run_is_made_for_it(no_active_run, name):
    with pytest.raises(TypeError):
        getattr(noisescale, name)(misspelt=1)

    assert active_run.current() is None
