"""What each way of calling the log functions records."""

import logging

import pytest
import torch
from torch import nn

from client_runs import make_batch, make_kept_run, make_model
from noisescale.transport.wire import FinishRecord
from noisescale_core.estimators.flags import Flags


def backward(model, num_small_batches=4, num_examples=16, seed=1):
    inputs, classes = make_batch(num_examples, seed)
    loss = torch.zeros(())
    for x, y in zip(inputs.chunk(num_small_batches), classes.chunk(num_small_batches), strict=True):
        part = nn.functional.cross_entropy(model(x), y) / num_small_batches
        part.backward()
        loss = loss + part.detach()
    return loss


def train_step(run, model, optimizer, **arguments):
    loss = backward(model)
    run.log_gradients(**{"loss": loss, **arguments})
    optimizer.step()
    optimizer.zero_grad()
    return float(loss)


def watched_run(small_batches="auto", **settings):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    run, kept = make_kept_run(**settings)
    run.watch(model, optimizer, small_batches=small_batches)
    return run, kept, model, optimizer


def test_each_step_is_one_row():
    run, kept, model, optimizer = watched_run()

    losses = [train_step(run, model, optimizer) for _ in range(3)]

    rows = kept.rows()
    assert [row.step for row in rows] == [0, 1, 2]
    assert [row.sum_loss for row in rows] == pytest.approx(losses)
    assert [row.examples for row in rows] == [16, 32, 48]
    assert {(row.num_updates, row.num_loss, row.lr, row.global_batch, row.flags) for row in rows} == {
        (1, 1, 0.25, 16, 0)
    }
    assert all(row.sum_trace_cov_sq == row.sum_trace_cov**2 for row in rows)
    assert all(row.sum_trace_cov_grad_sq_norm == row.sum_trace_cov * row.sum_grad_sq_norm for row in rows)


def test_log_every_adds_updates_up_and_finish_sends_the_rest():
    run, kept, model, optimizer = watched_run(log_every=3)
    single, single_kept, single_model, single_optimizer = watched_run()

    for _ in range(5):
        train_step(run, model, optimizer)
        train_step(single, single_model, single_optimizer)
    run.finish()

    rows, single_rows = kept.rows(), single_kept.rows()
    assert [(row.step, row.num_updates, row.num_loss) for row in rows] == [(2, 3, 3), (4, 2, 2)]
    for name in ("sum_trace_cov", "sum_grad_sq_norm", "sum_trace_cov_sq", "sum_loss"):
        assert getattr(rows[0], name) == pytest.approx(sum(getattr(row, name) for row in single_rows[:3]))
    assert rows[-1].examples == 80
    assert isinstance(kept.records[-1], FinishRecord)


def test_one_backward_a_step_gives_no_estimate_and_names_the_ways_out(caplog):
    caplog.set_level(logging.WARNING, "noisescale")
    run, kept, model, optimizer = watched_run(small_batches="micro_batches")

    for _ in range(2):
        loss = backward(model, num_small_batches=1)
        run.log_gradients(loss=loss, batch_size=16)
        optimizer.step()
        optimizer.zero_grad()

    row = kept.rows()[1]
    assert (row.sum_trace_cov, row.sum_grad_sq_norm_sq, row.flags) == (None, None, Flags.ONE_SMALL_BATCH)
    assert (row.num_updates, row.global_batch, row.lr, row.num_micro_batches) == (1, 16, 0.25, 1)
    assert row.sum_loss == pytest.approx(float(loss))
    assert [record.message for record in caplog.records].count(caplog.records[0].message) == 1
    assert "accumulate" in caplog.records[0].message
    assert "log_norms" in caplog.records[0].message


def test_a_batch_size_that_is_left_out_is_read_from_the_input_and_said_once(caplog):
    caplog.set_level(logging.WARNING, "noisescale")
    run, kept, model, optimizer = watched_run()

    for _ in range(3):
        train_step(run, model, optimizer)

    assert {row.global_batch for row in kept.rows()} == {16}
    assert [record.message for record in caplog.records] == [
        "batch size 16 in 4 small batches, read from the model's input: "
        "pass batch_size= to log_gradients() if an example is something else"
    ]


class FromDictionary(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, *, batch):
        return self.inner(batch["x"]) if isinstance(batch, dict) else self.inner(batch.x)


class Opaque:
    def __init__(self, x):
        self.x = x


@pytest.mark.parametrize(
    ("wrap", "batch_size", "flags"),
    [(lambda x: {"x": x}, 16, 0), (Opaque, None, Flags.BATCH_SIZE_UNKNOWN)],
    ids=["dictionary", "own class"],
)
def test_inputs_are_read_one_level_deep(wrap, batch_size, flags):
    model = FromDictionary()
    run, kept = make_kept_run()
    run.watch(model)

    for x, y in zip(*(part.split(4) for part in make_batch()), strict=True):
        (nn.functional.cross_entropy(model(batch=wrap(x)), y) / 4).backward()
    run.log_gradients(loss=1.0)

    row = kept.rows()[0]
    assert (row.global_batch, row.flags, row.sum_trace_cov is None) == (batch_size, flags, batch_size is None)
    assert row.sum_loss == 1.0


def test_an_evaluation_without_gradients_does_not_count_as_examples():
    run, kept, model, optimizer = watched_run()

    with torch.no_grad():
        model(make_batch(500)[0])
    train_step(run, model, optimizer)

    assert kept.rows()[0].global_batch == 16


def test_a_gradient_that_is_not_finite_is_flagged_and_left_out():
    run, kept, model, optimizer = watched_run(log_every=2)
    train_step(run, model, optimizer)

    backward(model)
    (model[0].weight[0, 0] * float("inf")).backward()
    run.log_gradients(loss=float("nan"), batch_size=16)
    run.finish()

    row = kept.rows()[0]
    assert row.flags == Flags.NONFINITE_GRADIENT | Flags.NONFINITE_LOSS
    assert (row.num_updates, row.num_loss) == (1, 1)
    assert row.sum_trace_cov > 0
    assert kept.groups()[0].num_updates == [1, 1, 1]


def test_a_step_whose_only_update_is_not_finite_has_no_sums():
    run, kept, model, _ = watched_run()
    backward(model)
    (model[0].bias[0] * float("nan")).backward()

    run.log_gradients(batch_size=16)

    row = kept.rows()[0]
    assert (row.sum_trace_cov, row.sum_grad_sq_norm, row.num_updates) == (None, None, 1)
    assert row.flags == Flags.NONFINITE_GRADIENT


def test_a_second_call_within_a_step_is_left_out(caplog):
    run, kept, model, optimizer = watched_run()

    loss = backward(model)
    run.log_gradients(loss=loss)
    backward(model)
    run.log_gradients(loss=loss)
    optimizer.step()
    optimizer.zero_grad()
    train_step(run, model, optimizer)

    assert [row.step for row in kept.rows()] == [0, 1]
    assert "twice" in caplog.text


def test_a_step_that_an_amp_scaler_skipped_does_not_spoil_the_next():
    """No optimizer.step(), the gradients are cleared: the next backward starts a new step."""
    run, kept, model, optimizer = watched_run()
    backward(model)
    run.log_gradients()
    optimizer.zero_grad()

    train_step(run, model, optimizer)

    rows = kept.rows()
    assert [(row.num_micro_batches, row.global_batch) for row in rows] == [(4, 16), (4, 16)]
    assert rows[0].sum_trace_cov == rows[1].sum_trace_cov


def test_logging_after_the_optimizer_step_finds_no_backward(caplog):
    run, kept, model, optimizer = watched_run()

    backward(model)
    optimizer.step()
    run.log_gradients(loss=1.0, batch_size=16)

    row = kept.rows()[0]
    assert (row.flags, row.sum_trace_cov, row.sum_loss) == (Flags.NO_BACKWARD, None, 1.0)
    assert "before optimizer.step()" in caplog.text


def test_steps_that_are_not_logged_are_counted():
    run, kept, model, optimizer = watched_run()

    for step in range(7):
        backward(model)
        if step % 3 == 0:
            run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()

    assert [(row.step, row.examples) for row in kept.rows()] == [(0, 16), (3, 64), (6, 112)]
    assert len({row.num_micro_batches for row in kept.rows()}) == 1


def test_a_given_step_numbers_those_that_follow():
    run, kept, model, optimizer = watched_run()

    train_step(run, model, optimizer, step=1000)
    train_step(run, model, optimizer)

    assert [row.step for row in kept.rows()] == [1000, 1001]


def test_without_an_optimizer_each_log_ends_a_step():
    model = make_model()
    run, kept = make_kept_run()
    run.watch(model)

    for _ in range(2):
        backward(model)
        run.log_gradients(lr=0.5)
        model.zero_grad()

    assert [(row.step, row.num_micro_batches, row.lr) for row in kept.rows()] == [(0, 4, 0.5), (1, 4, 0.5)]


def test_log_gradients_before_watch_keeps_the_loss():
    run, kept = make_kept_run()

    run.log_gradients(loss=2.5, lr=0.1)

    row = kept.rows()[0]
    assert (row.sum_loss, row.lr, row.sum_trace_cov, row.global_batch) == (2.5, 0.1, None, None)


def test_layer_records_wait_for_ten_seconds_and_ten_updates(monkeypatch):
    run, kept, model, optimizer = watched_run(group_seconds=10)
    clock = [0.0]
    monkeypatch.setattr(run._main._log, "_now", lambda: run._main._started_at + clock[0])

    for step in range(40):
        clock[0] = step * 0.6
        train_step(run, model, optimizer)
    run.finish()

    groups = kept.groups()
    assert [(record.step, record.num_updates[0]) for record in groups] == [(17, 18), (34, 17), (39, 5)]
    assert sum(sum(record.sum_trace_cov) for record in groups) == pytest.approx(
        sum(row.sum_trace_cov for row in kept.rows())
    )


def test_log_norms_equals_the_formula_of_two_batches():
    run, kept = make_kept_run()

    run.log_norms(step=5, small_batch_size=8, big_batch_size=64, small_sq_norm=3.0, big_sq_norm=1.0, loss=0.5, lr=0.1)
    run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=2.0, big_sq_norm=1.0)

    first, second = kept.rows()
    assert first.sum_trace_cov == pytest.approx(2.0 / (1 / 8 - 1 / 64))
    assert first.sum_grad_sq_norm == pytest.approx((64 * 1.0 - 8 * 3.0) / 56)
    assert (first.step, first.examples, first.num_micro_batches, first.micro_batch_size) == (5, 64, 8, 8)
    assert (second.step, second.examples) == (6, 128)


def test_log_norms_of_one_batch_size_says_that_it_cannot_tell():
    run, kept = make_kept_run()

    run.log_norms(small_batch_size=64, big_batch_size=64, small_sq_norm=1.0, big_sq_norm=1.0)

    assert (kept.rows()[0].flags, kept.rows()[0].sum_trace_cov) == (Flags.ONE_SMALL_BATCH, None)


def test_metrics_belong_to_the_newest_step():
    run, kept, model, optimizer = watched_run()
    train_step(run, model, optimizer)
    train_step(run, model, optimizer)

    run.log_metrics(eval_loss=0.5, accuracy=torch.tensor(0.25))
    run.log_metrics(step=7, score=1)
    run.log_metrics({"eval/loss": 0.5}, accuracy=1)
    run.log_metrics(9, {"held-out loss": 0.25})

    assert [(metric.step, dict(metric.values)) for metric in kept.metrics()] == [
        (1, {"eval_loss": 0.5, "accuracy": 0.25}),
        (7, {"score": 1.0}),
        (1, {"eval/loss": 0.5, "accuracy": 1.0}),
        (9, {"held-out loss": 0.25}),
    ]


def enter(context):
    with context:
        pass


@pytest.mark.parametrize(
    "call",
    [
        lambda run: run.log_gradients(loss=torch.ones(3)),
        lambda run: run.log_gradients(batch_size=-1),
        lambda run: run.log_gradients(step=-1),
        lambda run: run.log_gradients(learning_rate=0.1),
        lambda run: run.log_norms(small_batch_size=64, big_batch_size=8, small_sq_norm=1.0, big_sq_norm=1.0),
        lambda run: run.log_metrics(accuracy="high"),
        lambda run: run.log_metrics(0.5),
        lambda run: run.log_metrics(7),
        lambda run: run.log_metrics(7, 0.5),
        lambda run: run.log_metrics("loss", {"loss": 0.5}),
        lambda run: run.log_metrics(**{"a\nb": 1.0}),
        lambda run: enter(run.micro_batch(-3)),
    ],
)
def test_a_wrong_argument_after_watch_is_logged_once_and_never_raised(call, caplog):
    run, kept, _, _ = watched_run(strict=False)

    call(run)
    call(run)

    assert run.faults.count == 2
    assert len([record for record in caplog.records if record.exc_info]) == 1
    assert len(kept.records) == 0


def test_strict_raises_our_own_errors():
    run, _, _, _ = watched_run(strict=True)

    with pytest.raises(ValueError, match="batch_size"):
        run.log_gradients(batch_size=0)


def test_an_interrupt_passes():
    run, _, _, _ = watched_run(strict=False)

    class Interrupting:
        def __float__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.log_gradients(loss=1.0, lr=Interrupting())


def test_a_finished_run_takes_nothing_more():
    run, kept, model, optimizer = watched_run()
    train_step(run, model, optimizer)

    run.finish()
    count = len(kept.records)
    train_step(run, model, optimizer)
    run.log_metrics(accuracy=1.0)
    run.finish()

    assert len(kept.records) == count
    assert not model._forward_pre_hooks


@pytest.mark.parametrize(
    ("given", "said"),
    [((7,), "step 7 and no number"), ((7, 0.5), "got 0.5"), (("loss", {"loss": 0.5}), "integer")],
)
def test_metrics_without_numbers_are_said_and_not_swallowed(given, said, caplog):
    run, kept, _, _ = watched_run(strict=False)

    run.log_metrics(*given)

    assert said in caplog.text
    assert not kept.metrics()


def test_leaving_a_run_with_an_error_marks_it_failed():
    run, kept = make_kept_run()

    with pytest.raises(RuntimeError), run:
        raise RuntimeError("diverged")

    assert kept.records[-1].status == "failed"


def test_device_values_are_recorded_a_step_late(monkeypatch):
    """As on CUDA, with an event that passes when the test says so."""
    run, kept, model, optimizer = watched_run()
    has_passed = []

    class Event:
        def record(self):
            pass

        def query(self):
            return bool(has_passed)

        def synchronize(self):
            has_passed.append(True)

    run._main.watch.sent._values._make_event = Event

    train_step(run, model, optimizer)
    before = len(kept.rows())
    has_passed.append(True)
    train_step(run, model, optimizer)

    assert before == 0
    assert [row.step for row in kept.rows()] == [0, 1]


def test_a_disabled_run_hooks_nothing_and_records_nothing():
    from noisescale.config import Config
    from noisescale.description import RunDescription
    from noisescale.run.run import Run

    model = make_model()
    run = Run(Config(mode="disabled"), RunDescription())

    run.watch(model)
    with run.micro_batch(4), run.ignore():
        backward(model)
    run.log_gradients(loss=1.0)
    run.finish()

    assert not model._forward_pre_hooks
    assert str(run.noise_scale()) == "not resolved yet: no step was measured so far"


def test_nothing_is_said_at_warning_level_when_all_is_given(caplog):
    caplog.set_level(logging.WARNING)
    run, _, model, optimizer = watched_run()

    train_step(run, model, optimizer, batch_size=16)
    run.finish()

    assert caplog.records == []
