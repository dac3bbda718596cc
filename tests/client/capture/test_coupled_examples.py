"""BatchNorm in training mode: an example's gradient depends on the others, and the rows say so."""

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, make_batch, make_kept_run, terms_of, terms_of_means
from noisescale_core.estimators.flags import Flags

pytestmark = pytest.mark.usefixtures("either_way")


def normalised_model(num_norms=1):
    torch.manual_seed(0)
    layers = [nn.Linear(4, 8), *[nn.BatchNorm1d(8) for _ in range(num_norms)], nn.Tanh(), nn.Linear(8, 3)]
    return nn.Sequential(*layers).double()


def measure(model, chunk=4):
    inputs, classes = make_batch(16)
    parts = list(zip(inputs.double().split(chunk), classes.split(chunk), strict=True))
    run, kept = make_kept_run()
    run.watch(model)
    for x, y in parts:
        (nn.functional.cross_entropy(model(x), y) / len(parts)).backward()
    run.log_gradients()
    return run, kept.rows()[0], parts


def test_rows_carry_the_flag_and_the_terms_of_such_micro_batches():
    model = normalised_model()

    _, row, parts = measure(model)

    means = [flat_gradient(nn.functional.cross_entropy(model(x), y), list(model.parameters())) for x, y in parts]
    assert terms_of(row) == pytest.approx(terms_of_means(means, (4, 4, 4, 4)), rel=1e-10)
    assert row.flags == Flags.COUPLED_EXAMPLES


def test_in_evaluation_mode_nothing_is_coupled():
    model = normalised_model().eval()

    _, row, _ = measure(model)

    assert row.flags == 0


def test_one_example_a_micro_batch_is_coupled_to_none():
    """Positions of one picture share their statistics, but it is one example."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(1, 3, 2), nn.BatchNorm1d(3), nn.Flatten(), nn.LazyLinear(3)).double()
    inputs, classes = make_batch(4)
    model(inputs.double()[:, None])
    run, kept = make_kept_run()
    run.watch(model)

    for x, y in zip(inputs.double().split(1), classes.split(1), strict=True):
        (nn.functional.cross_entropy(model(x[:, None]), y) / 4).backward()
    run.log_gradients()

    assert kept.rows()[0].flags == 0


@pytest.mark.parametrize(("num_norms", "named"), [(1, "(1)"), (3, "(1 and 2 more)")])
def test_the_stream_names_the_layer(num_norms, named):
    run, _, _ = measure(normalised_model(num_norms))

    assert run._recorders.main._stream.notes == [
        f"BatchNorm {named} couples the examples of a micro-batch: the noise scale depends on the micro-batch's size"
    ]


def test_a_model_without_batch_normalisation_has_neither():
    run, row, _ = measure(nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 3)).double())

    assert row.flags == 0
    assert run._recorders.main._stream.notes == []


def test_with_one_backward_its_examples_are_not_told_apart_unasked():
    model = normalised_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs, classes = make_batch(16)
    run, kept = make_kept_run()
    run.watch(model, optimizer)

    for _ in range(3):
        nn.functional.cross_entropy(model(inputs.double()), classes).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()

    assert {row.flags for row in kept.rows()} == {Flags.ONE_SMALL_BATCH | Flags.COUPLED_EXAMPLES}
