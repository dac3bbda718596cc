"""Small batches of any size, however sizes are told and however the loop weighs them, against brute force."""

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, make_batch, make_kept_run, make_model, terms_of, terms_of_means
from noisescale_core.estimators.flags import Flags

pytestmark = pytest.mark.usefixtures("either_way")

RAGGED = (7, 2, 4, 3)


class Unreadable(torch.Tensor):
    """As if it lay on a device: to look at its value would wait."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    def _refuse(self, *_):
        raise AssertionError("somebody waited for the device")

    item = tolist = numpy = __bool__ = __int__ = __float__ = __index__ = _refuse


def late(number):
    return torch.tensor(float(number)).as_subclass(Unreadable)


def means_of(model, inputs, classes, sizes):
    parts = zip(inputs.split(list(sizes)), classes.split(list(sizes)), strict=True)
    return [
        flat_gradient(nn.functional.cross_entropy(model(x), y), list(model.parameters())) if len(x) else None
        for x, y in parts
    ]


def measure(sizes, *, told=lambda size: size, dtype=torch.float64, share=None, batch_size=None, **options):
    """The row of one step whose micro-batches have these sizes, and the mean gradients of these."""
    model = make_model().to(dtype)
    inputs, classes = make_batch(sum(sizes))
    inputs = inputs.to(dtype)
    means = means_of(model, inputs, classes, sizes)
    run, kept = make_kept_run()
    run.watch(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)
    for x, y in zip(inputs.split(list(sizes)), classes.split(list(sizes)), strict=True):
        loss = nn.functional.cross_entropy(model(x), y, reduction="sum") if len(x) else 0.0 * model(x).sum()
        with run.micro_batch(told(len(x))):
            (loss * (share(len(x)) if share else 1 / sum(sizes))).backward()
    run.log_gradients(batch_size=batch_size)
    return kept.rows()[0], means


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), RAGGED], ids=["equal", "ragged"])
@pytest.mark.parametrize("told", [float, late], ids=["on the host", "on the device"])
def test_marked_sizes_give_the_terms_wherever_they_are_known(sizes, told, dtype, rel):
    row, means = measure(sizes, told=told, dtype=dtype)

    assert terms_of(row) == pytest.approx(terms_of_means(means, sizes), rel=rel)
    assert (row.global_batch, row.num_micro_batches) == (16, 4)
    assert row.flags == (Flags.UNEQUAL_MICRO_BATCHES if sizes == RAGGED else 0)


@pytest.mark.parametrize("told", [float, late], ids=["on the host", "on the device"])
def test_a_micro_batch_without_a_token_counts_for_nothing(told):
    """All its tokens are padding: its loss is 0, and so is its gradient."""
    row, means = measure((7, 0, 5, 4), told=told)

    present = [mean for mean in means if mean is not None]
    assert terms_of(row) == pytest.approx(terms_of_means(present, (7, 5, 4)), rel=1e-10)
    assert row.num_micro_batches == 3


def test_sizes_of_host_and_device_may_be_mixed():
    numbers = iter((late(7), 2.0, late(0), 4, late(3)))
    sizes = (7, 2, 0, 4, 3)

    row, means = measure(sizes, told=lambda _: next(numbers))

    present = [mean for mean in means if mean is not None]
    assert terms_of(row) == pytest.approx(terms_of_means(present, RAGGED), rel=1e-10)


def test_tokens_are_shares_of_the_sequences_that_are_logged():
    """16 tokens in a step of 4 sequences: terms are per sequence."""
    row, means = measure(RAGGED, loss_reduction="mean_over_tokens", batch_size=4)

    in_sequences = [size / 4 for size in RAGGED]
    assert terms_of(row) == pytest.approx(terms_of_means(means, in_sequences), rel=1e-10)
    assert row.global_batch == 4


def test_the_loss_of_a_hugging_face_trainer_is_a_mean_over_the_tokens_of_the_step():
    """Each micro-batch's summed loss ÷ `num_items_in_batch`, the tokens of all micro-batches."""
    num_items_in_batch = torch.tensor(sum(RAGGED))

    row, means = measure(RAGGED, told=late, share=lambda _: 1 / num_items_in_batch)

    assert terms_of(row) == pytest.approx(terms_of_means(means, RAGGED), rel=1e-10)


def test_a_ragged_last_micro_batch_is_read_from_the_input():
    row, means = measure((5, 5, 5, 2), told=lambda _: None)

    assert terms_of(row) == pytest.approx(terms_of_means(means, (5, 5, 5, 2)), rel=1e-10)
    assert row.flags == Flags.UNEQUAL_MICRO_BATCHES


@pytest.mark.parametrize("told", [float, late, lambda _: None], ids=["on the host", "on the device", "read"])
def test_equal_weights_of_unequal_sizes_have_their_own_terms_and_a_flag(told, caplog):
    """E|g_k|² = |G|² + tr Σ / n_k and |mean of g_k|² solved for both: what such a loop's gradient really is."""
    row, means = measure(RAGGED, told=told, share=lambda size: 1 / (4 * size), weighting="equal")

    stacked = torch.stack(means)
    small, big = float(stacked.square().sum(1).mean()), float(stacked.mean(0).square().sum())
    mean_inverse = sum(1 / size for size in RAGGED) / 4
    trace_cov = (small - big) * 4 / 3 / mean_inverse
    assert terms_of(row) == pytest.approx((trace_cov, small - trace_cov * mean_inverse), rel=1e-10)
    assert row.flags == Flags.UNEQUAL_MICRO_BATCHES | Flags.WEIGHTING_MISMATCH
    assert "divide each loss by the step's number of examples" in caplog.text


def test_equal_weights_of_equal_sizes_are_no_mismatch():
    row, means = measure((4, 4, 4, 4), share=lambda size: 1 / (4 * size), weighting="equal")

    assert terms_of(row) == pytest.approx(terms_of_means(means, (4, 4, 4, 4)), rel=1e-10)
    assert row.flags == 0


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), RAGGED], ids=["equal", "ragged"])
@pytest.mark.parametrize("told", [float, late], ids=["on the host", "on the device"])
def test_a_summed_loss_is_divided_by_the_examples(sizes, told):
    row, means = measure(sizes, told=told, share=lambda _: 1.0, loss_reduction="sum")

    assert terms_of(row) == pytest.approx(terms_of_means(means, sizes), rel=1e-10)


def test_sizes_read_from_the_input_that_do_not_add_up_to_the_batch_are_not_trusted():
    """Time first, say: then the batch is taken as split equally."""
    row, means = measure((4, 4, 4, 4), told=lambda _: None, batch_size=48)

    assert terms_of(row) == pytest.approx(terms_of_means(means, (12, 12, 12, 12)), rel=1e-10)


def test_several_forwards_before_their_backward_passes_are_matched_in_their_order():
    model = make_model().double()
    inputs, classes = make_batch(16)
    inputs = inputs.double()
    means = means_of(model, inputs, classes, RAGGED)
    run, kept = make_kept_run()
    run.watch(model)

    losses = [
        nn.functional.cross_entropy(model(x), y, reduction="sum") / 16
        for x, y in zip(inputs.split(RAGGED), classes.split(RAGGED), strict=True)
    ]
    for loss, size in zip(losses, RAGGED, strict=True):
        with run.micro_batch(size):
            loss.backward()
    run.log_gradients()

    assert terms_of(kept.rows()[0]) == pytest.approx(terms_of_means(means, RAGGED), rel=1e-10)


def train(weight, *, num_steps, sizes=(8, 8, 8, 6), **options):
    """Rows of steps of ragged micro-batches whose mean losses a loop weighs by a function of their sizes."""
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run, kept = make_kept_run()
    run.watch(model, optimizer, **options)
    for seed in range(num_steps):
        inputs, classes = make_batch(sum(sizes), seed)
        for x, y in zip(inputs.split(sizes), classes.split(sizes), strict=True):
            (nn.functional.cross_entropy(model(x), y) * weight(len(x))).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
    return kept.rows()


def test_a_loop_that_averages_ragged_micro_batches_is_flagged_and_told(caplog):
    caplog.set_level("INFO")

    rows = train(lambda n: 1 / 4, num_steps=60)

    assert rows[0].flags == Flags.UNEQUAL_MICRO_BATCHES
    assert rows[-1].flags == Flags.UNEQUAL_MICRO_BATCHES | Flags.WEIGHTING_MISMATCH
    assert caplog.text.count("if the loop averages them with equal weight") == 1
    assert caplog.text.count("are averaged with equal weight, though") == 1


def test_once_it_is_found_the_terms_are_those_of_equal_weights():
    told = train(lambda n: 1 / 4, num_steps=60, weighting="equal")
    found = train(lambda n: 1 / 4, num_steps=60)

    assert terms_of(found[-1]) == pytest.approx(terms_of(told[-1]), rel=1e-9)
    assert terms_of(found[0]) != pytest.approx(terms_of(told[0]), rel=0.01)


def test_a_loop_that_weighs_by_size_is_not_flagged(caplog):
    rows = train(lambda n: n / 30, num_steps=60)

    assert {row.flags for row in rows} == {Flags.UNEQUAL_MICRO_BATCHES}
    assert "equal weight, though" not in caplog.text


def test_equal_weighting_that_is_none_is_told(caplog):
    train(lambda n: n / 16, num_steps=60, sizes=RAGGED, weighting="equal")

    assert caplog.text.count("weighting='equal' was said, but") == 1
