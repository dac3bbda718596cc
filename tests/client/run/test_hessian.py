"""`run.log_hessian()`: kind `hessian` as a series of its own, and nothing else in the training changes."""

import pytest
import torch
from torch import nn

from client_runs import make_batch, make_kept_run, make_model, terms_of
from noisescale.capture.kinds.hessian import hessian_terms
from noisescale.transport.wire import FinishRecord

pytestmark = pytest.mark.usefixtures("either_way")


def losses_of(model, num=4, seed=5):
    """The mean losses of small batches of 8, and of one more for the curvature."""
    inputs, classes = make_batch(8 * (num + 1), seed)
    parts = list(zip(inputs.double().split(8), classes.split(8), strict=True))
    *losses, curvature = [lambda x=x, y=y: nn.functional.cross_entropy(model(x), y) for x, y in parts]
    return losses, curvature


class Loop:
    def __init__(self, model=None, **options):
        self.model = (model or make_model()).double()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.run, self.kept = make_kept_run(strict=options.pop("strict", True))
        self.run.watch(self.model, self.optimizer, **options)

    def step(self, index, *, between=lambda: None):
        inputs, classes = make_batch(16, seed=index)
        for x, y in zip(inputs.double().split(4), classes.split(4), strict=True):
            (nn.functional.cross_entropy(self.model(x), y) / 4).backward()
            between()
        self.run.log_gradients(batch_size=16)
        self.optimizer.step()
        self.optimizer.zero_grad()

    @property
    def rows(self):
        return self.kept.of_kind("hessian").rows()


@pytest.mark.parametrize("has_curvature", [True, False])
def test_the_row_holds_the_terms_of_the_products(has_curvature):
    loop = Loop()
    losses, curvature = losses_of(loop.model)
    curvature = curvature if has_curvature else None
    sizes = [8, 8, 8, 8]
    loop.run.unwatch()
    truth = hessian_terms(list(loop.model.parameters()), losses, curvature, sizes=sizes)
    loop.run.watch(loop.model, loop.optimizer)
    loop.step(0)

    loop.run.log_hessian(losses, sizes, curvature, step=7)

    [row] = loop.rows
    assert row.step == 7
    loop.run.unwatch()
    truth = hessian_terms(list(loop.model.parameters()), losses, curvature, sizes=sizes)
    assert terms_of(row) == pytest.approx((truth.trace_cov, truth.grad_sq_norm), rel=1e-10)
    assert (row.num_micro_batches, row.micro_batch_size, row.global_batch, row.num_loss) == (4, 8, 32, 0)


def test_the_step_is_that_which_runs_and_the_examples_those_so_far():
    loop = Loop()
    loop.step(0)
    loop.step(1)

    loop.run.log_hessian(*losses_of(loop.model)[:1])

    assert [(row.step, row.examples) for row in loop.rows] == [(2, 32)]


def test_its_stream_opens_on_first_use_and_says_what_it_is():
    loop = Loop(small_batches="per_example", every=3)
    assert loop.kept.others == {}

    for _ in range(2):
        loop.run.log_hessian(*losses_of(loop.model)[:1])
    loop.run.finish()

    [kept] = loop.kept.others.values()
    stream = kept.describe().stream
    assert (stream["kind"], stream["estimator"], stream["measure_every"]) == ("hessian", "micro_batches", None)
    assert len(kept.rows()) == 2
    assert isinstance(kept.records[-1], FinishRecord)


def test_the_noise_scale_of_the_kind_can_be_asked_for():
    loop = Loop()

    for seed in range(10):
        loop.run.log_hessian(*losses_of(loop.model, seed=seed)[:1])

    assert loop.run.noise_scale(kind="hessian").num_updates == 10


@pytest.mark.parametrize("options", [{}, {"small_batches": "per_example"}, {"split": 2}, {"kinds": ["sign"]}])
def test_in_the_middle_of_a_step_it_changes_neither_the_training_nor_the_terms(options):
    plain, measured = Loop(**options), Loop(**options)
    losses, curvature = losses_of(measured.model)

    for index in range(3):
        plain.step(index)
        measured.step(index, between=lambda: measured.run.log_hessian(losses, None, curvature))

    for ours, theirs in zip(measured.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    for ours, theirs in zip(measured.kept.rows(), plain.kept.rows(), strict=True):
        assert terms_of(ours) == pytest.approx(terms_of(theirs), rel=1e-12)
        assert (ours.num_micro_batches, ours.global_batch, ours.flags) == (
            theirs.num_micro_batches,
            theirs.global_batch,
            theirs.flags,
        )


def test_random_numbers_and_running_statistics_stay():
    torch.manual_seed(0)
    loop = Loop(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3)))
    losses, _ = losses_of(loop.model)
    before = torch.random.get_rng_state(), {name: b.clone() for name, b in loop.model.named_buffers()}

    loop.run.log_hessian(losses)

    assert torch.equal(torch.random.get_rng_state(), before[0])
    for name, buffer in loop.model.named_buffers():
        assert torch.equal(buffer, before[1][name])
    assert all(p.grad is None for p in loop.model.parameters())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda loop, losses: loop.run.log_hessian(losses[:1]), "at least 3 small batches, got 1"),
        (lambda loop, losses: loop.run.log_hessian(losses, [8, 8]), "examples of each of the 4"),
        (lambda loop, losses: loop.run.log_hessian([lambda: 1 / 0] * 3), "division by zero"),
        (lambda loop, losses: loop.run.log_hessian(losses, name="critic"), "got 'critic'"),
    ],
)
def test_a_fault_is_reported_and_the_step_is_measured_as_without(call, message, caplog):
    plain, faulty = Loop(), Loop(strict=False)
    losses, _ = losses_of(faulty.model)

    plain.step(0)
    faulty.step(0, between=lambda: call(faulty, losses))

    assert message in caplog.text
    assert faulty.run.faults.count == 4
    assert terms_of(faulty.kept.rows()[0]) == pytest.approx(terms_of(plain.kept.rows()[0]), rel=1e-12)


def test_before_watch_the_parameters_are_not_known(caplog):
    run, _ = make_kept_run(strict=False)

    run.log_hessian([])

    assert "call watch(model, optimizer) first" in caplog.text


def test_terms_that_are_not_finite_give_no_row():
    loop = Loop()
    losses, _ = losses_of(loop.model)

    loop.run.log_hessian([lambda loss=loss: loss() * float("nan") for loss in losses])

    assert loop.rows == []
