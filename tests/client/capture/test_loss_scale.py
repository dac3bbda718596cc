"""A loss scaler multiplies every gradient; `watch(scaler=)` undoes it wherever the log comes."""

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, make_batch, make_kept_run, make_model, terms_of, terms_of_means
from noisescale_core.estimators.flags import Flags

pytestmark = pytest.mark.usefixtures("either_way")

SIZES = (4, 4, 4, 4)


def true_terms(model_seed=0):
    model = make_model(model_seed).double()
    inputs, classes = make_batch()
    parts = zip(inputs.double().split(4), classes.split(4), strict=True)
    means = [flat_gradient(nn.functional.cross_entropy(model(x), y), list(model.parameters())) for x, y in parts]
    return terms_of_means(means, SIZES)


class ScaledLoop:
    """A loop with a scaler, as PyTorch's documentation writes it."""

    def __init__(self, *, scaler=None, is_given=True, lr=0.0, **options):
        self.model = make_model().double()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.scaler = scaler or torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=10**6)
        self.run, self.kept = make_kept_run()
        self.run.watch(self.model, self.optimizer, scaler=self.scaler if is_given else None, **options)

    def backward(self, seed=1, factor=1.0, reduction="mean"):
        inputs, classes = make_batch(seed=seed)
        for x, y in zip(inputs.double().split(4), classes.split(4), strict=True):
            loss = nn.functional.cross_entropy(self.model(x), y, reduction=reduction)
            self.scaler.scale(factor * loss / (4 if reduction == "mean" else 1)).backward()

    def step(self, *, log, set_to_none=True, **backward):
        self.backward(**backward)
        if log == "before":
            self.run.log_gradients()
        self.scaler.unscale_(self.optimizer)
        if log == "after":
            self.run.log_gradients()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=set_to_none)


@pytest.mark.parametrize("log", ["before", "after"])
def test_the_scale_is_undone_before_and_after_unscaling(log):
    loop = ScaledLoop()
    truth = true_terms()

    loop.step(log=log)
    loop.step(log=log)

    for row in loop.kept.rows():
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)
        assert row.flags == 0


@pytest.mark.parametrize("log", ["before", "after"])
def test_gradients_kept_as_zeros_may_be_unscaled_too(log):
    loop = ScaledLoop()
    truth = true_terms()

    for _ in range(3):
        loop.step(log=log, set_to_none=False)

    for row in loop.kept.rows():
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)


def test_a_summed_loss_and_a_scale_are_undone_together():
    loop = ScaledLoop(loss_reduction="sum")
    truth = true_terms()

    loop.step(log="after", reduction="sum")

    assert terms_of(loop.kept.rows()[0]) == pytest.approx(truth, rel=1e-10)


def test_a_scale_that_grows_is_that_of_its_own_step():
    loop = ScaledLoop(scaler=torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1))
    truth = true_terms()

    for _ in range(3):
        loop.step(log="before")

    assert loop.scaler.get_scale() == 32.0
    for row in loop.kept.rows():
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)


def test_a_scaler_that_is_switched_off_changes_nothing():
    loop = ScaledLoop(scaler=torch.amp.GradScaler("cpu", enabled=False))
    truth = true_terms()

    loop.step(log="after")

    assert terms_of(loop.kept.rows()[0]) == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("log", ["before", "after"])
def test_a_step_that_overflowed_has_no_estimate_and_does_not_touch_the_next(log):
    loop = ScaledLoop()

    loop.step(log=log, factor=float("inf"))
    truth = true_terms()
    loop.step(log=log)

    overflowed, good = loop.kept.rows()
    assert (overflowed.sum_trace_cov, overflowed.flags) == (None, Flags.NONFINITE_GRADIENT)
    assert terms_of(good) == pytest.approx(truth, rel=1e-10)
    assert (good.flags, good.num_micro_batches) == (0, 4)


def test_a_watch_without_the_scaler_measures_before_unscaling_as_multiples():
    loop = ScaledLoop(is_given=False)
    truth = true_terms()

    loop.step(log="before")

    assert terms_of(loop.kept.rows()[0]) == pytest.approx([2.0**20 * term for term in truth], rel=1e-10)


@pytest.mark.parametrize("scale", [2.0, 2.0**10, 2.0**16])
def test_a_gradient_that_an_unknown_scaler_has_unscaled_gives_no_estimate(scale, caplog):
    """Its foreach division does not raise the counter that torch raises at a change in place."""
    loop = ScaledLoop(scaler=torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=10**6), is_given=False)

    for _ in range(3):
        loop.step(log="after")

    for row in loop.kept.rows():
        assert (row.sum_trace_cov, row.flags) == (None, Flags.UNMATCHED_GRADIENT)
    assert "watch(..., scaler=scaler)" in caplog.text


def test_an_unknown_scaler_that_begins_to_unscale_is_noticed():
    """A small model looks now and then, and from then on at each step."""
    loop = ScaledLoop(scaler=torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=10**6), is_given=False)
    for _ in range(8):
        loop.step(log="before")

    for _ in range(80):
        loop.step(log="after")

    flags = [row.flags for row in loop.kept.rows()]
    assert flags[:8] == [0] * 8
    assert flags[-16:] == [Flags.UNMATCHED_GRADIENT] * 16


def test_a_gradient_divided_out_of_place_gives_no_estimate():
    loop = ScaledLoop(is_given=False)

    loop.backward()
    for parameter in loop.model.parameters():
        parameter.grad = parameter.grad / 2
    loop.run.log_gradients()

    assert (loop.kept.rows()[0].sum_trace_cov, loop.kept.rows()[0].flags) == (None, Flags.UNMATCHED_GRADIENT)


def test_asking_for_the_scale_leaves_the_scaler_as_it_was():
    """Its own accessor would wait for the device, or open an entry for the optimizer."""
    loop = ScaledLoop()

    loop.backward()
    loop.run.log_gradients()

    assert not loop.scaler._per_optimizer_states


def test_several_optimizers_share_a_scaler():
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
    models = [make_model(seed).double() for seed in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.0) for model in models]
    run, kept = make_kept_run()
    for name, model, optimizer in zip("ab", models, optimizers, strict=True):
        run.watch(model, optimizer, scaler=scaler, name=name)
    inputs, classes = make_batch()

    for x, y in zip(inputs.double().split(4), classes.split(4), strict=True):
        scaler.scale(sum(nn.functional.cross_entropy(model(x), y) for model in models) / 4).backward()
    scaler.unscale_(optimizers[0])
    run.log_gradients(name="a")
    run.log_gradients(name="b")

    [beside] = kept.others.values()
    assert terms_of(kept.rows()[0]) == pytest.approx(true_terms(0), rel=1e-10)
    assert terms_of(beside.rows()[0]) == pytest.approx(true_terms(1), rel=1e-10)
