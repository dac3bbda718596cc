"""Examples that depend on each other are flagged by the distances of neighbouring steps' gradients."""

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, make_kept_run, terms_of
from noisescale.capture.sums.small_batches import SmallBatchSize
from noisescale.capture.values.recent_gradients import MAX_ELEMENTS, RecentGradients
from noisescale_core.estimators.flags import Flags

BATCH = 32
functional = nn.functional


def make_mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 12), nn.Tanh(), nn.Linear(12, 3)).double()


class Data:
    """2,000 examples of three classes, and the numbers that draw from them."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(3)
        self.x = torch.randn(2000, 10, generator=self.generator, dtype=torch.float64)
        noise = torch.randn(2000, 3, generator=self.generator, dtype=torch.float64) / 2
        self.y = (self.x[:, :3] + noise).argmax(1)

    def batch(self, size=BATCH):
        rows = torch.randint(2000, (size,), generator=self.generator)
        return self.x[rows], self.y[rows]


def plain(data, model, x, y):
    return functional.cross_entropy(model(x), y)


def mixup(data, model, x, y):
    order = torch.randperm(len(x), generator=data.generator)
    output = model((x + x[order]) / 2)
    return (functional.cross_entropy(output, y) + functional.cross_entropy(output, y[order])) / 2


def contrastive(data, model, x, y):
    other = x + 0.3 * torch.randn(x.shape, generator=data.generator, dtype=torch.float64)
    first, second = functional.normalize(model(torch.cat([x, other])), dim=1).chunk(2)
    return functional.cross_entropy(first @ second.T / 0.2, torch.arange(len(x)))


def by_class(data, model, x, y):
    return functional.cross_entropy(model(x), y, weight=x.new_tensor([1.0, 5.0, 0.2]))


def by_class_and_smoothed(data, model, x, y):
    weight = x.new_tensor([1.0, 5.0, 0.2])
    return 8 * functional.cross_entropy(model(x), y, weight=weight, label_smoothing=0.1)


def by_class_and_summed(data, model, x, y):
    weight = x.new_tensor([1.0, 5.0, 0.2])
    return functional.cross_entropy(model(x), y, weight=weight, reduction="sum") / len(x)


def steps_of(loss, num_steps, *, lr=0.0, sizes=(BATCH,), logs_loss=False, **options):
    """Rows of a run."""
    data, model = Data(), make_mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    run, kept = make_kept_run()
    run.watch(model, optimizer, **options)
    for step in range(num_steps):
        size = sizes[step % len(sizes)]
        value = loss(data, model, *data.batch(size))
        value.backward()
        run.log_gradients(loss=value if logs_loss else None, batch_size=size)
        optimizer.step()
        optimizer.zero_grad()
    run.finish()
    return kept.rows()


def truth_of(loss, num_draws=800):
    """tr Σ of the batch's gradient, from draws of it."""
    data, model = Data(), make_mlp()
    parameters = list(model.parameters())
    drawn = torch.stack([flat_gradient(loss(data, model, *data.batch()), parameters) for _ in range(num_draws)])
    return float(BATCH * drawn.var(0).sum())


WAYS = [{"small_batches": "per_example"}, {"split": 8}]


@pytest.mark.parametrize("way", WAYS, ids=["examples", "split"])
@pytest.mark.parametrize(("loss", "is_too_small"), [(mixup, True), (contrastive, False)])
def test_examples_that_are_mixed_or_compared_are_flagged_with_about_the_factor(loss, is_too_small, way, caplog):
    rows = steps_of(loss, 110, **way)

    measured = sum(terms_of(row)[0] for row in rows) / len(rows)
    factor = truth_of(loss) / measured
    said = next(record.getMessage() for record in caplog.records if "depend on each other" in record.getMessage())
    assert rows[-1].flags & Flags.DEPENDENT_EXAMPLES
    assert (factor > 1.3) == is_too_small
    assert f"too {'small' if is_too_small else 'large'} by a factor of about" in said
    about = float(said.split("about ")[1].split(",")[0])
    assert about == pytest.approx(factor if is_too_small else 1 / factor, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("lr", [0.0, 0.1])
@pytest.mark.parametrize("way", WAYS, ids=["examples", "split"])
def test_independent_examples_are_not(way, lr):
    rows = steps_of(plain, 200, lr=lr, **way)

    assert {row.flags for row in rows} == {0}


@pytest.mark.parametrize("way", [*WAYS, {}], ids=["examples", "split", "unasked"])
@pytest.mark.parametrize("loss", [by_class, by_class_and_smoothed])
def test_a_loss_that_is_divided_by_the_sum_of_its_weights_is_flagged_at_once(loss, way, caplog):
    """Examples share the divisor; seen where the logged loss still has its graph."""
    rows = [row for row in steps_of(loss, 5, logs_loss=True, **way) if row.sum_trace_cov is not None]

    assert rows
    assert all(row.flags & Flags.DEPENDENT_EXAMPLES for row in rows)
    assert sum("weighted by class" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.parametrize("loss", [plain, by_class_and_summed])
def test_losses_without_shared_weights_are_not(loss):
    rows = steps_of(loss, 5, logs_loss=True, small_batches="per_example")

    assert {row.flags for row in rows} == {0}


def test_micro_batches_have_a_sum_of_weights_each():
    rows = steps_of(by_class, 5, logs_loss=True, small_batches="micro_batches")

    assert not any(row.flags & Flags.DEPENDENT_EXAMPLES for row in rows)


def test_examples_that_are_taken_unasked_are_looked_at_too():
    rows = steps_of(mixup, 220, every=2)

    assert any(row.flags & Flags.DEPENDENT_EXAMPLES for row in rows)


def test_steps_of_other_sizes_are_compared_with_none():
    rows = steps_of(plain, 150, sizes=(BATCH, 2 * BATCH), small_batches="per_example")

    assert not any(row.flags & Flags.DEPENDENT_EXAMPLES for row in rows)


def test_layers_that_are_large_elsewhere_or_complex_are_not_kept():
    class Source:
        dropped = ()

    kept, large = torch.ones(3), torch.zeros(MAX_ELEMENTS + 1)
    elsewhere, imaginary = torch.ones(3, device="meta"), torch.ones(3, dtype=torch.complex64)
    parameters = [kept, large, elsewhere, imaginary]
    for parameter in parameters:
        parameter.grad = parameter.clone()

    columns, distance_L = RecentGradients(parameters, [0, 1, 2, 3], Source()).look([SmallBatchSize(BATCH)])

    assert list(columns) == [1]
    assert len(distance_L) == 0
