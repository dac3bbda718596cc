"""Parameters that have no gradient, always or now and then: frozen, sparse, unused, routed to."""

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, make_batch, make_kept_run, make_model, terms_of, terms_of_means
from noisescale_core.estimators.flags import Flags

pytestmark = pytest.mark.usefixtures("either_way")

SIZES = (4, 4, 4, 4)


def measured(model, parts, loss_of, *, optimizer=None, steps=1):
    """The row of the last step and the mean gradients of what is trained."""
    trained = [p for p in model.parameters() if p.requires_grad]
    means = [flat_gradient(loss_of(model, part), trained) for part in parts]
    run, kept = make_kept_run()
    optimizer = optimizer or torch.optim.SGD(trained, lr=0.0)
    run.watch(model, optimizer)
    for _ in range(steps):
        for part in parts:
            (loss_of(model, part) / len(parts)).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
    run.finish()
    return kept, means


def classified(model, part):
    return nn.functional.cross_entropy(model(part[0]), part[1])


def batch_parts():
    inputs, classes = make_batch(16)
    return list(zip(inputs.double().split(4), classes.split(4), strict=True))


def test_frozen_parameters_are_not_measured():
    model = make_model().double()
    model[0].requires_grad_(False)

    kept, means = measured(model, batch_parts(), classified)

    assert terms_of(kept.rows()[0]) == pytest.approx(terms_of_means(means, SIZES), rel=1e-10)
    assert kept.groups()[0].names == ["1", "3"]
    assert kept.rows()[0].flags == 0


class LoRA(nn.Module):
    """A frozen layer and a trained correction of low rank."""

    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def test_adapters_of_a_frozen_model_are_measured_alone():
    model = make_model()
    model.requires_grad_(False)
    model[0], model[3] = LoRA(model[0]), LoRA(model[3])
    model = model.double()

    kept, means = measured(model, batch_parts(), classified)

    assert len(means[0]) == 4 * 2 + 2 * 8 + 8 * 2 + 2 * 3
    assert terms_of(kept.rows()[0]) == pytest.approx(terms_of_means(means, SIZES), rel=1e-10)


def test_parameters_frozen_later_on_count_as_zero_from_then_on():
    model = make_model().double()
    parts = batch_parts()
    run, kept = make_kept_run()
    run.watch(model)
    model[0].requires_grad_(False)
    means = [flat_gradient(classified(model, part), [*model[1].parameters(), *model[3].parameters()]) for part in parts]
    model.zero_grad()

    for _ in range(2):
        for part in parts:
            (classified(model, part) / 4).backward()
        run.log_gradients()
        model.zero_grad()

    assert terms_of(kept.rows()[-1]) == pytest.approx(terms_of_means(means, SIZES), rel=1e-10)


class Words(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.embed = nn.Embedding(50, 6, sparse=sparse)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens):
        return self.head(self.embed(tokens).mean(1))


@pytest.mark.parametrize("sparse", [False, True])
def test_embeddings_are_measured_with_dense_and_sparse_gradients(sparse):
    torch.manual_seed(0)
    model = Words(sparse).double()
    tokens, classes = torch.randint(0, 50, (16, 5)), torch.randint(0, 3, (16,))
    parts = list(zip(tokens.split(4), classes.split(4), strict=True))

    kept, means = measured(model, parts, classified, steps=2)

    for row in kept.rows():
        assert terms_of(row) == pytest.approx(terms_of_means(means, SIZES), rel=1e-10)
        assert row.flags == 0


class Experts(nn.Module):
    """Each micro-batch goes to the expert of its first example."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 4)
        self.experts = nn.ModuleList(nn.Linear(4, 3) for _ in range(3))

    def forward(self, x):
        return self.experts[int(x[0, 0] > 0)](torch.tanh(self.shared(x)))


def test_experts_that_some_small_batches_pass_by_are_flagged_and_their_terms_are_right():
    torch.manual_seed(0)
    model = Experts().double()
    parts = batch_parts()
    assert len({int(x[0, 0] > 0) for x, _ in parts}) == 2

    kept, means = measured(model, parts, classified)

    row, groups = kept.rows()[0], kept.groups()[0]
    assert terms_of(row) == pytest.approx(terms_of_means(means, SIZES), rel=1e-10)
    assert row.flags == Flags.PARTIAL_GRADIENTS
    assert groups.names == ["shared", "experts.0", "experts.1", "experts.2"]
    assert (groups.sum_trace_cov[3], groups.sum_grad_sq_norm[3]) == (0, 0)


def test_a_parameter_that_is_never_used_is_no_partial_gradient():
    model = make_model().double()
    model.extra = nn.Linear(2, 2).double()
    model.forward = lambda x: nn.Sequential.forward(model[:4], x)

    kept, means = measured(model, batch_parts(), classified)

    assert terms_of(kept.rows()[0]) == pytest.approx(terms_of_means(means, SIZES), rel=1e-10)
    assert kept.rows()[0].flags == 0


def test_a_parameter_added_to_the_optimizer_after_watch_is_not_measured():
    model = make_model().double()
    optimizer = torch.optim.SGD(model[3].parameters(), lr=0.0)
    parts = batch_parts()
    means = [flat_gradient(classified(model, part), list(model[3].parameters())) for part in parts]
    run, kept = make_kept_run()
    run.watch(model, optimizer)
    optimizer.add_param_group({"params": list(model[0].parameters())})

    for part in parts:
        (classified(model, part) / 4).backward()
    run.log_gradients()

    assert terms_of(kept.rows()[0]) == pytest.approx(terms_of_means(means, SIZES), rel=1e-10)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_small_batch_that_is_not_finite_costs_its_step_only(value):
    model = make_model().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    parts = batch_parts()
    means = [flat_gradient(classified(model, part), list(model.parameters())) for part in parts]
    run, kept = make_kept_run()
    run.watch(model, optimizer)

    for factor in (value, 1.0):
        for index, part in enumerate(parts):
            (classified(model, part) / 4 * (factor if index == 2 else 1.0)).backward()
        run.log_gradients()
        optimizer.zero_grad()

    broken, good = kept.rows()
    assert (broken.sum_trace_cov, broken.flags) == (None, Flags.NONFINITE_GRADIENT)
    assert terms_of(good) == pytest.approx(terms_of_means(means, SIZES), rel=1e-10)
