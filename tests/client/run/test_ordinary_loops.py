"""What training loops do beside the plain step: each leaves the same numbers, or a reason for none."""

import contextlib

import pytest
import torch
from torch import nn

import noisescale
from client_runs import make_batch, make_kept_run, make_model
from noisescale.capture.small_batches.gradient_rows import GradientRows
from noisescale.run import active_run
from noisescale.transport.wire import MetricRecord
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.flags import Flags

pytestmark = pytest.mark.usefixtures("either_way")


def backward(model, seed=1):
    inputs, classes = make_batch(16, seed)
    for x, y in zip(inputs.chunk(4), classes.chunk(4), strict=True):
        (nn.functional.cross_entropy(model(x), y) / 4).backward()


def watched():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run, kept = make_kept_run()
    run.watch(model, optimizer)
    return run, kept, model, optimizer


def essence(row):
    return row.sum_trace_cov, row.sum_grad_sq_norm, row.num_micro_batches, row.global_batch, row.flags


def plain_row():
    run, kept, model, _ = watched()
    backward(model)
    run.log_gradients()
    return essence(kept.rows()[0])


def test_gradients_that_the_loop_throws_away_do_not_count():
    """`if not loss.isfinite(): optimizer.zero_grad(); continue`"""
    run, kept, model, optimizer = watched()
    backward(model, seed=7)
    optimizer.zero_grad()

    backward(model)
    run.log_gradients()

    assert essence(kept.rows()[0]) == plain_row()


def test_gradients_thrown_away_as_zeros_cost_the_estimate_of_that_step_only():
    run, kept, model, optimizer = watched()
    backward(model, seed=7)
    optimizer.zero_grad(set_to_none=False)
    backward(model)
    run.log_gradients()
    optimizer.zero_grad(set_to_none=False)

    backward(model)
    run.log_gradients()

    assert (kept.rows()[0].sum_trace_cov, kept.rows()[0].flags) == (None, Flags.UNMATCHED_GRADIENT)
    assert essence(kept.rows()[1]) == plain_row()


def test_a_micro_batch_that_raised_and_was_cleared_does_not_count():
    run, kept, model, optimizer = watched()
    with contextlib.suppress(MemoryError), run.micro_batch(4):
        backward(model, seed=7)
        raise MemoryError
    optimizer.zero_grad()

    backward(model)
    run.log_gradients()

    assert essence(kept.rows()[0]) == plain_row()


def clip(model):
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)


def average(model):
    for parameter in model.parameters():
        parameter.grad = parameter.grad / 4


@pytest.mark.parametrize("change", [clip, average, nn.Module.zero_grad])
def test_gradients_changed_before_the_log_give_no_estimate_and_a_sentence(change, caplog):
    caplog.set_level("WARNING", "noisescale")
    run, kept, model, optimizer = watched()

    for _ in range(2):
        backward(model)
        change(model)
        run.log_gradients(loss=1.0, batch_size=16)
        optimizer.step()
        optimizer.zero_grad()

    row = kept.rows()[1]
    assert (row.sum_trace_cov, row.flags, row.sum_loss) == (None, Flags.UNMATCHED_GRADIENT, 1.0)
    assert [record.message for record in caplog.records] == [caplog.records[0].message]
    assert "right after the last backward" in caplog.text


def test_a_gradient_that_was_changed_between_its_small_batches_gives_no_estimate():
    """Also where the first of them had just made it."""
    run, kept, model, _ = watched()

    for part in range(3):
        backward_of(model, part)
        if part == 0:
            clip(model)
    run.log_gradients()

    assert (kept.rows()[0].sum_trace_cov, kept.rows()[0].flags) == (None, Flags.UNMATCHED_GRADIENT)


def backward_of(model, part):
    inputs, classes = make_batch(16)
    rows = slice(4 * part, 4 * part + 4)
    (nn.functional.cross_entropy(model(inputs[rows]), classes[rows]) / 4).backward()


def test_a_backward_ignored_inside_a_marked_small_batch_leaves_it_as_it_was():
    """It adds to p.grad in place, which may be the very memory that the small batch is held in."""
    run, kept, model, _ = watched()

    for part in range(4):
        with run.micro_batch(4):
            backward_of(model, part)
            with run.ignore():
                sum(p.square().sum() for p in model.parameters()).backward()
    run.log_gradients()

    assert essence(kept.rows()[0])[2:] == plain_row()[2:]
    assert essence(kept.rows()[0])[:2] == pytest.approx(plain_row()[:2], rel=1e-3)


def test_a_log_after_which_only_ignored_backward_passes_came_has_nothing_to_measure():
    run, kept, model, optimizer = watched()
    backward(model)
    run.log_gradients()
    optimizer.zero_grad()

    with run.ignore():
        model(make_batch()[0]).sum().backward()
    run.log_gradients()

    assert all(row.sum_trace_cov is None for row in kept.rows()[1:])


def scaled_step(run, model, optimizer, *, is_logged_first):
    scaler = torch.amp.GradScaler("cpu")
    inputs, classes = make_batch()
    for x, y in zip(inputs.chunk(4), classes.chunk(4), strict=True):
        scaler.scale(nn.functional.cross_entropy(model(x), y) / 4).backward()
    if is_logged_first:
        run.log_gradients()
    scaler.unscale_(optimizer)
    if not is_logged_first:
        run.log_gradients()


def test_with_a_grad_scaler_the_log_comes_before_unscaling(caplog):
    run, kept, model, optimizer = watched()
    scaled_step(run, model, optimizer, is_logged_first=True)
    late, late_kept, late_model, late_optimizer = watched()
    scaled_step(late, late_model, late_optimizer, is_logged_first=False)

    [row], [late_row] = kept.rows(), late_kept.rows()
    plain = plain_row()
    assert row.sum_trace_cov / row.sum_grad_sq_norm == pytest.approx(plain[0] / plain[1])
    assert (late_row.sum_trace_cov, late_row.flags) == (None, Flags.UNMATCHED_GRADIENT)
    assert "unscaled" in caplog.text


def test_gradients_kept_as_zeros_give_the_same_numbers():
    run, kept, model, optimizer = watched()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    backward(model)
    run.log_gradients()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    backward(model)
    run.log_gradients()

    assert essence(kept.rows()[0]) == pytest.approx(plain_row())
    assert kept.rows()[1].flags == 0


def test_a_forward_in_evaluation_mode_does_not_count_even_with_gradients_enabled():
    run, kept, model, _ = watched()
    model.eval()
    model(make_batch(100)[0])
    model.train()

    backward(model)
    run.log_gradients()

    assert essence(kept.rows()[0]) == plain_row()


def test_a_model_trained_in_evaluation_mode_is_measured():
    run, kept, model, _ = watched()
    model.eval()

    backward(model)
    run.log_gradients()

    assert essence(kept.rows()[0]) == plain_row()


def test_a_gradient_left_over_from_the_step_before_gives_no_estimate_of_a_small_model():
    """`zero_grad()` was forgotten: p.grad holds more than this step's small batches."""
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run, kept = make_kept_run()
    run.watch(model, optimizer)

    for seed in range(3):
        backward(model, seed)
        if GradientRows.suits(list(model.parameters())) or seed == 0:
            run.log_gradients()
        optimizer.step()

    assert kept.rows()[0].sum_trace_cov is not None
    assert all(row.sum_trace_cov is None for row in kept.rows()[1:])


def test_small_batches_of_both_modes_keep_their_sizes():
    run, kept, model, _ = watched()

    for part in range(4):
        model.train(part % 2 == 1)
        backward_of(model, part)
    run.log_gradients()

    assert essence(kept.rows()[0]) == plain_row()


def test_parameters_that_the_optimizer_does_not_hold_are_not_measured():
    """`optimizer.zero_grad()` leaves them alone: their gradients add up over the whole run."""
    model = make_model()
    optimizer = torch.optim.SGD(model[3].parameters(), lr=0.0)
    run, kept = make_kept_run()
    run.watch(model, optimizer)

    for _ in range(3):
        backward(model)
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
    run.finish()

    assert essence(kept.rows()[2]) == essence(kept.rows()[0])
    assert kept.groups()[0].names == ["3"]


def test_an_optimizer_of_another_model_is_refused_with_the_way_out():
    run, _ = make_kept_run()

    with pytest.raises(ConfigError, match="make it from this model"):
        run.watch(make_model(), torch.optim.SGD(make_model().parameters(), lr=0.1))


def test_logging_without_watching_keeps_the_batch_size_and_takes_tensors():
    run, kept = make_kept_run()
    loss = 2 * torch.ones((), requires_grad=True)

    run.log_gradients(loss=loss, batch_size=32)
    run.log_metrics(eval_loss=loss)

    row = kept.rows()[0]
    assert (row.sum_loss, row.global_batch, row.examples, row.flags) == (2.0, 32, 32, Flags.NO_BACKWARD)
    assert kept.metrics()[0].values == {"eval_loss": 2.0}


def test_a_metric_that_is_not_finite_is_recorded_as_null():
    run, kept = make_kept_run()

    run.log_metrics(eval_loss=float("nan"), accuracy=0.5)

    assert kept.metrics() == [
        MetricRecord(0, pytest.approx(kept.metrics()[0].wall_time), {"eval_loss": None, "accuracy": 0.5})
    ]


def test_a_resumed_job_that_gives_its_step_counts_the_examples_before():
    run, kept, model, optimizer = watched()

    for step in (100, None):
        backward(model)
        run.log_gradients(batch_size=16, step=step)
        optimizer.step()
        optimizer.zero_grad()

    assert [(row.step, row.examples) for row in kept.rows()] == [(100, 1616), (101, 1632)]


def test_logging_after_the_end_is_said_once(caplog):
    run, kept = make_kept_run()
    run.finish()
    run.finish()

    run.log_metrics(accuracy=1.0)
    run.log_metrics(accuracy=1.0)

    assert len(kept.records) == 1
    assert [record.message for record in caplog.records] == [
        "log_metrics() after finish() is left out: noisescale.init() begins a new run"
    ]


def test_a_training_after_a_finished_run_begins_a_new_one(monkeypatch):
    monkeypatch.setattr(active_run, "_active", [])
    monkeypatch.setenv("NOISESCALE_MODE", "disabled")
    with noisescale.init() as first:
        pass

    kept = noisescale.noise_scale()
    noisescale.watch(make_model())

    assert kept.num_updates == 0
    assert active_run.active() is not first


def test_who_writes_the_gradients_at_the_end_of_the_backward_changes_nothing():
    """As DistributedDataParallel does: in a callback of its own, queued after ours."""
    run, kept, model, _ = watched()

    def write_again():
        model[0].weight.grad.mul_(1.0)

    model[0].weight.register_hook(lambda _: torch.autograd.Variable._execution_engine.queue_callback(write_again))
    backward(model)
    run.log_gradients()

    assert essence(kept.rows()[0]) == plain_row()


@pytest.mark.usefixtures("either_way")
def test_an_optimizer_stepped_by_hand_has_steps_all_the_same():
    run, kept, model, _ = watched()

    for _ in range(3):
        backward(model)
        run.log_gradients()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None

    assert [row.step for row in kept.rows()] == [0, 1, 2]
    assert all(row.flags == 0 for row in kept.rows())


@pytest.mark.parametrize(("reduction", "is_told"), [("sum", False), ("mean_over_examples", True)])
def test_a_logged_loss_that_is_a_sum_is_told(reduction, is_told, caplog):
    caplog.set_level("INFO")
    model = make_model()
    run, _ = make_kept_run()
    run.watch(model, loss=noisescale.Loss(reduction=reduction))
    inputs, classes = make_batch(16)

    for _ in range(2):
        loss = nn.functional.cross_entropy(model(inputs), classes, reduction="sum")
        loss.backward()
        run.log_gradients(loss=loss)
        model.zero_grad()

    assert caplog.text.count("say watch(..., loss=Loss(reduction='sum'))") == is_told


def test_a_mean_loss_is_not_taken_for_a_sum(caplog):
    caplog.set_level("INFO")
    model = make_model()
    run, _ = make_kept_run()
    run.watch(model)
    inputs, classes = make_batch(16)
    loss = nn.functional.cross_entropy(model(inputs), classes)
    loss.backward()
    run.log_gradients(loss=loss)

    assert "loss_reduction" not in caplog.text
