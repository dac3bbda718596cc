"""Steps of an ordinary data loader: the last one of an epoch has what is left."""

import pytest
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from client_runs import make_kept_run
from demo import digits
from digits_truth import exact_terms
from noisescale_core.estimators.flags import Flags


def frozen_epochs(run, model, num_epochs, *, num_images=1797, **loading):
    """README's loop on digits at weights that stay, with a loader as PyTorch makes it."""
    images, labels = digits.load()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run.watch(model, optimizer, **loading)
    torch.manual_seed(3)
    for _ in range(num_epochs):
        for x, y in DataLoader(TensorDataset(images[:num_images], labels[:num_images]), 256, shuffle=True):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            run.log_gradients(loss=loss)
            optimizer.step()


@pytest.fixture
def model():
    torch.manual_seed(0)
    return digits.make_model()


@pytest.mark.thorough
def test_five_images_at_the_end_of_each_epoch_hide_nothing(model, caplog):
    run, kept = make_kept_run()

    frozen_epochs(run, model, 12)

    trace_cov, grad_sq_norm = exact_terms(model)
    found = run.noise_scale()
    assert found.state in ("resolved", "tentative")  # it was unresolved, above 20 examples
    assert found.estimate.low < trace_cov / grad_sq_norm < found.estimate.high
    rests = [row for row in kept.rows() if row.global_batch == 5]
    assert rests
    assert {row.flags for row in rests} == {Flags.SMALLER_STEP}
    assert {row.sum_trace_cov for row in rests} == {None}
    measured = [row for row in kept.rows() if row.sum_trace_cov is not None]
    assert len(measured) > 10
    assert {row.global_batch for row in measured} == {256}
    said = [record.message for record in caplog.records if "left out of the noise scale" in record.message]
    assert len(said) == 1
    assert said[0].startswith("a step of 5 examples among steps of 256")


def test_the_batch_in_use_is_that_of_most_steps_and_not_of_the_last(model):
    run, _ = make_kept_run(example="image", unit="images")

    frozen_epochs(run, model, 3)

    assert run.recommendation().current_batch_size == 256


def test_a_batch_that_shrinks_for_good_is_measured_again_after_eight_steps():
    run, kept = make_kept_run()

    for size in [256] * 20 + [64] * 20:
        run.log_norms(small_batch_size=1, big_batch_size=size, small_sq_norm=101.0, big_sq_norm=1 + 100 / size)

    measured = [row.global_batch for row in kept.rows() if row.sum_trace_cov is not None]
    assert measured == [256.0] * 20 + [64.0] * 12
    assert run._main.measured().batch_size == 64


def test_steps_that_are_nearly_as_large_are_all_taken():
    run, kept = make_kept_run()

    for size in [256, 200, 220, 256, 190, 240]:
        run.log_norms(small_batch_size=1, big_batch_size=size, small_sq_norm=101.0, big_sq_norm=1 + 100 / size)

    assert all(row.sum_trace_cov is not None for row in kept.rows())


def test_further_kinds_leave_the_same_steps_out(model):
    run, kept = make_kept_run()

    frozen_epochs(run, model, 4, kinds=["sign"])

    assert 5.0 not in {row.global_batch for row in kept.of_kind("sign").rows()}
