"""Checkpointing, compilation, fused optimizers, gradients kept elsewhere: right numbers, or a flag."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from client_runs import flat_gradient, make_batch, make_kept_run, make_model, terms_of, terms_of_means
from noisescale_core.estimators.flags import Flags

SIZES = (4, 4, 4, 4)


def batch_parts(seed=1):
    inputs, classes = make_batch(16, seed)
    return list(zip(inputs.double().split(4), classes.split(4), strict=True))


def loss_of(model, part):
    return nn.functional.cross_entropy(model(part[0]), part[1])


def true_terms(model, parameters=None):
    means = [flat_gradient(loss_of(model, part), list(parameters or model.parameters())) for part in batch_parts()]
    return terms_of_means(means, SIZES)


class Twice(nn.Module):
    """One layer in two checkpointed segments."""

    def __init__(self, use_reentrant):
        super().__init__()
        self.shared = nn.Linear(4, 4)
        self.head = nn.Linear(4, 3)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        hidden = x.clone().requires_grad_()
        for _ in range(2):
            if self.use_reentrant is None:
                hidden = torch.tanh(self.shared(hidden))
            else:
                hidden = checkpoint(lambda h: torch.tanh(self.shared(h)), hidden, use_reentrant=self.use_reentrant)
        return self.head(hidden)


def measure(model, *, loss=loss_of, watched=None, **options):
    run, kept = make_kept_run()
    run.watch(watched or model, **options)
    for part in batch_parts():
        (loss(model, part) / 4).backward()
    run.log_gradients(batch_size=16)
    return kept.rows()[0]


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_parameter_in_two_checkpointed_segments_is_summed_before_it_is_squared(use_reentrant):
    torch.manual_seed(0)
    model = Twice(None).double()
    truth = true_terms(model)
    model.use_reentrant = use_reentrant

    row = measure(model)

    assert terms_of(row) == pytest.approx(truth, rel=1e-10)
    assert (row.num_micro_batches, row.flags) == (4, 0)


def test_a_large_one_whose_parts_were_squared_already_is_flagged(at_once, monkeypatch):
    """On the CPU a large gradient is reduced inside the hook: its parts cannot be put together any more."""
    monkeypatch.setattr("noisescale.capture.sums.pending_gradients.SMALL", 0)
    torch.manual_seed(0)

    row = measure(Twice(True).double())

    assert (row.sum_trace_cov, row.flags) == (None, Flags.UNMATCHED_GRADIENT)


@pytest.mark.thorough
@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("is_watched_compiled", [True, False])
def test_a_compiled_model_has_the_same_terms(is_watched_compiled):
    model = make_model().double()
    truth = true_terms(model)
    compiled = torch.compile(model, backend="aot_eager")

    row = measure(compiled, watched=compiled if is_watched_compiled else model)

    assert terms_of(row) == pytest.approx(truth, rel=1e-10)
    assert (row.num_micro_batches, row.flags) == (4, 0)


@pytest.mark.usefixtures("either_way")
def test_a_model_compiled_in_place_tells_its_batch_size():
    model = make_model().double()
    truth = true_terms(model)
    model.compile(backend="aot_eager")
    compiled = model._compiled_call_impl
    run, kept = make_kept_run()

    run.watch(model)
    for part in batch_parts():
        (loss_of(model, part) / 4).backward()
    run.log_gradients()
    copied = copy.deepcopy(model)
    run.unwatch()

    row = kept.rows()[0]
    assert terms_of(row) == pytest.approx(truth, rel=1e-10)
    assert (row.num_micro_batches, row.global_batch, row.flags) == (4, 16, 0)
    assert model._compiled_call_impl is compiled
    assert copied._compiled_call_impl is None


def test_a_model_compiled_in_place_while_it_is_watched_stays_so():
    model = make_model()
    model.compile(backend="eager")
    run, _ = make_kept_run()
    run.watch(model)

    model.compile(backend="aot_eager")
    newest = model._compiled_call_impl
    run.unwatch()

    assert model._compiled_call_impl is newest


@pytest.mark.usefixtures("either_way")
@pytest.mark.filterwarnings("ignore:Using backward")  # PyTorch advises against it
def test_a_graph_kept_for_higher_derivatives_has_the_same_terms():
    """With create_graph=True autograd makes a new p.grad at each backward."""
    model = make_model().double()
    truth = true_terms(model)
    run, kept = make_kept_run()
    run.watch(model)

    for part in batch_parts():
        (loss_of(model, part) / 4).backward(create_graph=True)
    run.log_gradients()
    model.zero_grad()

    row = kept.rows()[0]
    assert terms_of(row) == pytest.approx(truth, rel=1e-10)
    assert row.flags == 0


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize(
    "make_optimizer",
    [
        lambda parameters: torch.optim.AdamW(parameters, lr=0.0, fused=True),
        lambda parameters: torch.optim.AdamW(parameters, lr=0.0, foreach=True),
        lambda parameters: torch.optim.SGD(parameters, lr=0.0, weight_decay=0.1, momentum=0.9),
    ],
    ids=["fused", "foreach", "weight decay"],
)
def test_every_optimizer_and_way_of_clearing_gives_the_same_terms(make_optimizer, set_to_none):
    model = make_model().double()
    truth = true_terms(model)
    optimizer = make_optimizer(model.parameters())
    run, kept = make_kept_run()
    run.watch(model, optimizer)

    for _ in range(3):
        optimizer.zero_grad(set_to_none=set_to_none)
        for part in batch_parts():
            (loss_of(model, part) / 4).backward()
        run.log_gradients()
        optimizer.step()

    for row in kept.rows():
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)
        assert (row.num_micro_batches, row.flags) == (4, 0)


@pytest.mark.usefixtures("either_way")
def test_gradients_cleared_between_forward_and_backward_are_those_of_the_new_step():
    """`loss = ...; optimizer.zero_grad(); loss.backward()`, as many loops have it."""
    model = make_model().double()
    truth = true_terms(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run, kept = make_kept_run()
    run.watch(model, optimizer)

    for _ in range(3):
        for index, part in enumerate(batch_parts()):
            loss = loss_of(model, part) / 4
            if index == 0:
                optimizer.zero_grad()
            loss.backward()
        run.log_gradients()
        optimizer.step()

    for row in kept.rows():
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)
        assert (row.num_micro_batches, row.flags) == (4, 0)


@pytest.mark.usefixtures("either_way")
def test_gradients_that_are_accumulated_elsewhere_give_a_flag_and_nothing_breaks():
    """As fused accumulation into `main_grad` does: p.grad never holds the sum."""
    model = make_model().double()
    for parameter in model.parameters():
        parameter.main_grad = torch.zeros_like(parameter)

        def accumulate(parameter):
            parameter.main_grad += parameter.grad
            parameter.grad = None

        parameter.register_post_accumulate_grad_hook(accumulate)

    row = measure(model)

    assert row.sum_trace_cov is None
    assert row.flags & (Flags.UNMATCHED_GRADIENT | Flags.NO_BACKWARD)


@pytest.mark.usefixtures("either_way")
def test_an_optimizer_inside_the_backward_gives_a_flag_and_nothing_breaks():
    """Each parameter is stepped and cleared as soon as its gradient is there."""
    model = make_model().double()
    optimizers = {p: torch.optim.SGD([p], lr=0.0) for p in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)

    row = measure(model)

    assert row.sum_trace_cov is None
    assert row.flags & (Flags.UNMATCHED_GRADIENT | Flags.NO_BACKWARD)


@pytest.mark.usefixtures("either_way")
def test_a_second_backward_through_one_graph_is_no_second_small_batch_when_marked():
    model = make_model().double()
    truth = true_terms(model)
    run, kept = make_kept_run()
    run.watch(model)

    for part in batch_parts():
        with run.micro_batch(4):
            loss = loss_of(model, part) / 4
            (0.3 * loss).backward(retain_graph=True)
            (0.7 * loss).backward()
    run.log_gradients()

    assert terms_of(kept.rows()[0]) == pytest.approx(truth, rel=1e-10)


@pytest.mark.usefixtures("either_way")
def test_a_scripted_hook_that_changes_gradients_is_measured_as_it_leaves_them():
    """A user's own hook on a parameter, registered before ours, is part of the gradient."""
    model = make_model().double()
    truth = true_terms(model)
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: 2 * gradient)

    row = measure(model)

    assert terms_of(row) == pytest.approx([4 * term for term in truth], rel=1e-10)
