"""`run.clip_grad_norm_()` clips as PyTorch does, whatever was measured."""

import copy

import pytest
import torch
from torch import nn

from client_runs import make_batch, make_kept_run, make_model
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.flags import Flags

pytestmark = pytest.mark.usefixtures("either_way")

MAX_NORM = 0.05


def backward(model, seed=1, scale=1.0):
    inputs, classes = make_batch(16, seed)
    for x, y in zip(inputs.split(4), classes.split(4), strict=True):
        (scale * nn.functional.cross_entropy(model(x), y) / 4).backward()


def gradients_of(model):
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


class Calls:
    """Counts the passes over all gradients that PyTorch's own clipping makes."""

    def __init__(self, monkeypatch):
        self.count = 0
        own = torch.nn.utils.clip_grad_norm_

        def counted(*args, **kwargs):
            self.count += 1
            return own(*args, **kwargs)

        monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", counted)


def loop_of(model, *, clip, run=None, log=True, steps=5, before=lambda: None):
    """The norms and the clipped gradients of each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    if run is not None:
        run.watch(model, optimizer)
    seen = []
    for step in range(steps):
        backward(model, seed=step)
        if run is not None and log:
            run.log_gradients()
        before()
        norm = clip()
        seen.append((float(norm), gradients_of(model)))
        optimizer.step()
        optimizer.zero_grad()
    return seen


def same(found, expected):
    for (norm, gradients), (true_norm, true_gradients) in zip(found, expected, strict=True):
        assert norm == pytest.approx(true_norm, rel=1e-5)
        torch.testing.assert_close(gradients, true_gradients, rtol=1e-5, atol=1e-9)


def torch_loop():
    model = make_model()
    return loop_of(model, clip=lambda: nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM))


def test_the_measured_norm_is_used_and_gives_the_same(monkeypatch):
    expected = torch_loop()
    calls = Calls(monkeypatch)
    model = make_model()
    run, _ = make_kept_run()

    found = loop_of(model, clip=lambda: run.clip_grad_norm_(MAX_NORM), run=run)

    same(found, expected)
    assert calls.count == 3  # to compare, at the beginning


@pytest.mark.parametrize("log", [True, False])
def test_parameters_may_be_given_as_a_generator(log):
    expected = torch_loop()
    model = make_model()
    run, _ = make_kept_run()

    found = loop_of(model, clip=lambda: run.clip_grad_norm_(MAX_NORM, model.parameters()), run=run, log=log)

    same(found, expected)


def test_some_of_the_parameters_are_clipped_by_their_own_norm():
    run, _ = make_kept_run()
    model, twin = make_model(), make_model()
    run.watch(model)
    for _ in range(4):
        for one in (model, twin):
            one.zero_grad()
            backward(one)
        run.log_gradients()
        norm = run.clip_grad_norm_(MAX_NORM, model[3].parameters())

    expected = nn.utils.clip_grad_norm_(twin[3].parameters(), MAX_NORM)

    assert float(norm) == pytest.approx(float(expected), rel=1e-6)
    torch.testing.assert_close(gradients_of(model), gradients_of(twin))


def test_gradients_that_were_changed_since_the_log_are_measured_anew():
    run, _ = make_kept_run()
    model = make_model()

    def halve():
        for parameter in model.parameters():
            parameter.grad.mul_(0.5)

    twin = make_model()

    def halve_twin():
        for parameter in twin.parameters():
            parameter.grad.mul_(0.5)

    expected = loop_of(twin, clip=lambda: nn.utils.clip_grad_norm_(twin.parameters(), MAX_NORM), before=halve_twin)
    found = loop_of(model, clip=lambda: run.clip_grad_norm_(MAX_NORM), run=run, before=halve)

    same(found, expected)


@pytest.mark.parametrize("is_given", [True, False], ids=["scaler given", "scaler unknown"])
@pytest.mark.parametrize("log", ["before", "after"])
def test_a_loss_scaler_never_makes_the_norm_wrong(is_given, log):
    """Unscaling changes no counter of torch: without the scaler only a comparison shows it."""
    results = []
    for is_ours in (False, True):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
        scaler.scale(torch.zeros(()))  # its scale exists from the first use on
        run, _ = make_kept_run()
        if is_ours:
            run.watch(model, optimizer, scaler=scaler if is_given else None)
        seen = []
        for step in range(6):
            backward(model, seed=step, scale=2.0**12)
            if is_ours and log == "before":
                run.log_gradients()
            scaler.unscale_(optimizer)
            if is_ours and log == "after":
                run.log_gradients()
            norm = run.clip_grad_norm_(MAX_NORM) if is_ours else nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            seen.append((float(norm), gradients_of(model)))
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        results.append(seen)

    same(results[1], results[0])


def test_what_ignore_keeps_out_of_the_estimate_is_clipped_all_the_same():
    results = []
    for is_ours in (False, True):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        run, _ = make_kept_run()
        if is_ours:
            run.watch(model, optimizer)
        for step in range(5):
            optimizer.step()
            optimizer.zero_grad()
            backward(model, seed=step)
            if step == 4:  # once the measured norm is trusted
                with run.ignore():
                    sum(p.square().sum() for p in model.parameters()).backward()
            if is_ours:
                run.log_gradients()
                norm = run.clip_grad_norm_(MAX_NORM)
            else:
                norm = nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        results.append([(float(norm), gradients_of(model))])

    same(results[1], results[0])


def test_a_proxy_of_the_normalisations_clips_all_parameters():
    results = []
    for is_ours in (False, True):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run, _ = make_kept_run()
        if is_ours:
            run.watch(model, optimizer, small_batches="layer_norm_proxy")
        backward(model)
        if is_ours:
            run.log_gradients()
            norm = run.clip_grad_norm_(MAX_NORM)
        else:
            norm = nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        results.append([(float(norm), gradients_of(model))])

    same(results[1], results[0])


def test_each_of_several_optimizers_is_clipped_by_itself():
    models = {"a": make_model(0), "b": make_model(1)}
    twins = copy.deepcopy(models)
    run, _ = make_kept_run()
    for name, model in models.items():
        run.watch(model, torch.optim.SGD(model.parameters(), lr=0.1), name=name)
    for model in (*models.values(), *twins.values()):
        backward(model)
    for name in models:
        run.log_gradients(name=name)

    run.clip_grad_norm_(MAX_NORM, name="b")

    nn.utils.clip_grad_norm_(twins["b"].parameters(), MAX_NORM)
    for name in models:
        torch.testing.assert_close(gradients_of(models[name]), gradients_of(twins[name]))


def test_a_disabled_run_clips_too():
    expected = torch_loop()
    model = make_model()
    run = Run(Config(mode="disabled"), RunDescription())

    found = loop_of(model, clip=lambda: run.clip_grad_norm_(MAX_NORM), run=run)

    same(found, expected)


@pytest.mark.parametrize("clears", [False, True])
def test_gradients_of_backward_passes_behind_the_log_are_clipped_by_their_own_norm(clears):
    """After so many steps that the measured norm is no longer compared with PyTorch's."""
    run, _ = make_kept_run()
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    run.watch(model, optimizer)
    for step in range(4):
        backward(model, seed=step)
        run.log_gradients()
        run.clip_grad_norm_(MAX_NORM)
        optimizer.step()
        optimizer.zero_grad()
    backward(model)
    run.log_gradients()
    if clears:
        optimizer.zero_grad()
    backward(model, seed=9)
    own = gradients_of(model).norm()

    norm = run.clip_grad_norm_(MAX_NORM)

    torch.testing.assert_close(norm, own)
    torch.testing.assert_close(gradients_of(model).norm(), torch.tensor(MAX_NORM), rtol=1e-4, atol=0)


@pytest.mark.parametrize("end", ["unwatch", "finish"])
def test_after_the_end_it_clips_on(end):
    expected = torch_loop()
    model = make_model()
    run, _ = make_kept_run()
    run.watch(model)
    getattr(run, end)()

    found = loop_of(model, clip=lambda: run.clip_grad_norm_(MAX_NORM))

    same(found, expected)


def test_before_watch_there_is_nothing_to_clip():
    run, _ = make_kept_run()

    with pytest.raises(ConfigError, match="before watch"):
        run.clip_grad_norm_(MAX_NORM)


def test_clipping_before_the_log_costs_the_estimate():
    model = make_model()
    run, kept = make_kept_run()
    run.watch(model)
    backward(model)

    run.clip_grad_norm_(MAX_NORM)
    run.log_gradients()

    assert (kept.rows()[0].sum_trace_cov, kept.rows()[0].flags) == (None, Flags.UNMATCHED_GRADIENT)


def test_a_gradient_that_is_not_finite_is_left_to_pytorch():
    results = []
    for is_ours in (False, True):
        model = make_model()
        run, _ = make_kept_run()
        if is_ours:
            run.watch(model)
        backward(model, scale=float("nan"))
        if is_ours:
            run.log_gradients()
        norm = run.clip_grad_norm_(MAX_NORM) if is_ours else nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        results.append((norm, gradients_of(model)))

    torch.testing.assert_close(results[1], results[0], equal_nan=True)
