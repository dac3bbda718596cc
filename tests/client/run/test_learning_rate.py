"""`run.learning_rate()`: too low, right and too high on a real training; switched off; changes from outside."""

import pytest
import torch
from torch import nn

import noisescale
from client_runs import make_kept_run, make_model
from noisescale.capture.path.look_plan import LookPlan
from recommendation_answers import RepeatingServer, asks


class Training:
    """A small regression with noise."""

    def __init__(self, lr=0.01, *, make=torch.optim.AdamW, planned_steps=200, is_watched=True, **options):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 1))
        self.truth = torch.randn(20, 1)
        self.data = torch.Generator().manual_seed(1)
        self.optimizer = make(self.model.parameters(), lr=lr)
        settings = {name: options.pop(name) for name in ("run_id", "folders") if name in options}
        self.run, self.kept = make_kept_run(planned_steps=planned_steps, **settings)
        if is_watched:
            self.run.watch(self.model, self.optimizer, **options)
        self.is_watched = is_watched

    def steps(self, count, first=None):
        for index in range(count):
            x = torch.randn(64, 20, generator=self.data)
            y = torch.tanh(x @ self.truth) + 0.3 * torch.randn(64, 1, generator=self.data)
            self.optimizer.zero_grad()
            for part_x, part_y in zip(x.chunk(2), y.chunk(2), strict=True):
                loss = (self.model(part_x) - part_y).square().mean() / 2
                loss.backward()
            if self.is_watched:
                self.run.log_gradients(loss=loss, step=first if index == 0 else None)
            self.optimizer.step()
        return self


CALIBRATED = {
    "verdict": "too_low",
    "headline": "Learning rate: too low",
    "reason": "The rate is about 4 × too low. Calibrated here on 5 runs of this task.",
    "octaves": -2.0,
    "low": -3.0,
    "high": -1.0,
    "probability": 0.99,
    "calibration": "Calibrated here on 5 runs of this task.",
    "path": {"num_updates": 110, "start": 0},
    "points": [],
}


def asking(training, answer):
    http = RepeatingServer(200, answer)
    training.run._advisor._server = asks(http)
    return http


def test_a_server_that_knows_runs_of_the_task_reads_the_path_against_them():
    training = Training(3e-4).steps(110)
    http = asking(training, CALIBRATED)

    found = training.run.learning_rate()

    assert http.asked == [(f"/api/v1/runs/{training.run.id}/learning-rate", [("points", "1")])]
    assert (found.octaves, found.low, found.high, found.num_updates) == (-2.0, -3.0, -1.0, 110)
    assert str(found) == f"{CALIBRATED['headline']}\n{CALIBRATED['reason']}"


@pytest.mark.parametrize(
    "answer",
    [
        CALIBRATED | {"calibration": None},
        CALIBRATED | {"path": {"num_updates": 50}},
        CALIBRATED | {"path": {"num_updates": 400}},
        CALIBRATED | {"path": None},
        CALIBRATED | {"headline": 3},
        "<html>a proxy's login page</html>",
        {"type": "/errors/run-not-found"},
    ],
    ids=[
        "no runs of one's own",
        "half of the path",
        "a path that is over",
        "no path",
        "no words",
        "another page",
        "no such run",
    ],
)
def test_a_server_that_knows_less_than_the_job_leaves_it_to_the_job(answer):
    training = Training(3e-4).steps(110)
    asking(training, answer)

    found = training.run.learning_rate()

    assert found.calibration is None
    assert found.octaves is not None
    assert training.run.faults.count == 0


def test_before_there_is_a_verdict_no_server_is_asked():
    training = Training(3e-4).steps(30)
    http = asking(training, CALIBRATED)

    assert training.run.learning_rate().verdict is None
    assert http.asked == []


@pytest.mark.slow
@pytest.mark.parametrize(("lr", "word"), [(3e-4, "too_low"), (1e-3, "about_right"), (0.15, "too_high")])
def test_a_rate_is_told_at_the_end_of_the_plan(lr, word):
    training = Training(lr).steps(199)

    found = training.run.learning_rate()

    assert found.verdict == word
    assert found.schedule == "constant"
    assert found.num_updates > 90
    assert training.run.faults.count == 0


def test_before_fifty_steps_it_says_when_to_look_again():
    found = Training(3e-4).steps(30).run.learning_rate()

    assert found.verdict is None
    assert found.reason.endswith("steps tell too little: look again after 50.")


def test_switched_off_there_is_not_a_hook_and_not_a_byte():
    training = Training(judge_rate=False)
    plain = Training()

    assert training.run._main.watch.path is None
    assert len(training.optimizer._optimizer_step_pre_hooks) == 0
    assert len(plain.optimizer._optimizer_step_pre_hooks) == 1
    assert len(training.optimizer._optimizer_step_post_hooks) == 1  # that of the watch itself
    training.steps(60)
    assert "judge_rate=False" in training.run.learning_rate().reason


def test_unwatching_leaves_no_hook_on_the_optimizer():
    training = Training().steps(3)

    training.run.unwatch()

    assert not training.optimizer._optimizer_step_pre_hooks
    assert not training.optimizer._optimizer_step_post_hooks


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.AdamW])
def test_weights_are_bit_identical_with_it_off_and_unwatched(make):
    trainings = [Training(make=make), Training(make=make, judge_rate=False), Training(make=make, is_watched=False)]

    first, *others = [[p.detach() for p in training.steps(60).model.parameters()] for training in trainings]

    for other in others:
        assert all(torch.equal(one, two) for one, two in zip(first, other, strict=True))


def test_a_checkpoint_that_is_loaded_begins_the_path_again():
    training = Training().steps(60)
    state = {name: value + 1.0 for name, value in training.model.state_dict().items()}

    training.model.load_state_dict(state)
    training.steps(40)
    training.run.unwatch()

    assert 60 <= training.run._main._log.path.start < 100
    assert training.run.learning_rate().num_updates <= 40


def test_a_copy_of_the_weights_for_an_evaluation_changes_nothing():
    training = Training().steps(40)
    state = {name: value.clone() for name, value in training.model.state_dict().items()}

    training.model.load_state_dict({name: 0.9 * value for name, value in state.items()})
    training.model.load_state_dict(state)
    training.steps(60)

    assert training.run._main._log.path.start == 0


def test_a_second_optimizer_has_a_verdict_of_its_own():
    run, _ = make_kept_run()
    first, second = make_model(), make_model()
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (first, second)]
    run.watch(first, optimizers[0], name="a")
    run.watch(second, optimizers[1], name="b")
    for _ in range(5):
        for name, model, optimizer in zip("ab", (first, second), optimizers, strict=True):
            model(torch.randn(4, 4)).square().mean().backward()
            run.log_gradients(batch_size=4, name=name)
            if name == "b":
                optimizer.step()
            optimizer.zero_grad()

    assert run.learning_rate("a").num_updates == 0
    assert run.learning_rate("b").num_updates == 5


def test_an_optimizer_that_is_not_known_is_named():
    run, _ = make_kept_run(strict=False)

    assert "'x'" in run.learning_rate("x").reason


def test_a_run_that_has_diverged_is_told_so():
    training = Training(planned_steps=100).steps(60)
    with torch.no_grad():
        training.model[0].weight.fill_(torch.nan)
    training.steps(3)

    found = training.run.learning_rate()

    assert found.verdict is None
    assert "not finite since step" in found.reason


def test_it_is_printed_in_two_lines_and_is_a_function_of_the_package():
    text = str(Training(3e-4).steps(110).run.learning_rate())

    assert text.startswith("Learning rate: perhaps too low\nOver ")
    assert noisescale.learning_rate.__doc__ == noisescale.Run.learning_rate.__doc__


def test_wrong_arguments_are_refused():
    with pytest.raises(noisescale.ConfigError, match="judge_rate must be True or False, got 'yes'"):
        Training(judge_rate="yes")


RUN_ID = "7d1f0c9e-3b6a-4c58-9a52-0e6f6f1f2c11"


def resumable(tmp_path, run_id=RUN_ID, lr=3e-4):
    """A training in a process of its own: its data goes on where the checkpoint of the one before was made."""
    return Training(lr, run_id=run_id, folders=(tmp_path,))


def test_a_resumed_job_goes_on_with_the_path_from_its_checkpoint(tmp_path):
    first = resumable(tmp_path)
    begun = [p.detach().clone() for p in first.model.parameters()]
    first.steps(80)
    state = [{name: value.clone() for name, value in first.model.state_dict().items()}, first.optimizer.state_dict()]
    first.steps(20)
    first.run.finish()

    second = resumable(tmp_path)
    second.model.load_state_dict(state[0])
    second.optimizer.load_state_dict(state[1])
    second.steps(20, first=80)
    second.run.unwatch()

    path = second.run._main._log.path
    assert path.start == 0
    assert 80 < path.path.num_updates <= 100
    # the last look was some steps ago
    way = sum(float((p.detach() - q).square().sum()) for p, q in zip(second.model.parameters(), begun, strict=True))
    assert path.path.sq_distance == pytest.approx(way, rel=0.15)
    assert second.run.learning_rate().octaves < -0.5


def test_a_job_that_begins_the_run_anew_begins_its_path_anew(tmp_path):
    first = resumable(tmp_path).steps(60)
    first.run.finish()

    second = resumable(tmp_path).steps(20)
    second.run.unwatch()

    assert second.run.learning_rate().num_updates <= 20


def test_a_run_without_an_id_of_its_own_keeps_no_file(tmp_path):
    resumable(tmp_path, run_id=None).steps(20).run.finish()

    assert not (tmp_path / "paths").exists()


@pytest.mark.parametrize("content", ["", "{}", '{"layout": 1, "sketch": [], "start": 0, "moments": [[1, 2]]}'])
def test_a_file_that_says_nothing_begins_the_path_at_the_checkpoint(tmp_path, content):
    (tmp_path / "paths").mkdir()
    (tmp_path / "paths" / f"{RUN_ID}-0.json").write_text(content)

    training = resumable(tmp_path).steps(20, first=80)
    training.run.unwatch()

    assert training.run._main._log.path.start == 80
    assert training.run.faults.count == 0


def path_of_rows(rows):
    """What a server makes of the rows: sums since the start, and the end of the last that knows one."""
    told = [row for row in rows if row.path_sq_distance is not None]
    start = told[-1].path_start
    since = [row for row in rows if row.step > start and row.path_start in (None, start)]
    return (
        sum(row.num_path_updates for row in since),
        sum(row.sum_update_sq_norm or 0.0 for row in since),
        told[-1].path_sq_distance,
        start,
    )


@pytest.mark.parametrize("log_every", [1, 7])
def test_rows_add_up_to_the_path_that_the_job_knows(log_every):
    training = Training(planned_steps=100, log_every=log_every).steps(60)
    training.run._main.collect()

    num_updates, total, distance, start = path_of_rows(training.kept.rows())

    known = training.run._main._log.path.path
    assert start == 0
    if log_every == 1:
        assert num_updates == known.num_updates
        assert total == pytest.approx(known.sum_sq_norm)
        assert distance == known.sq_distance
    assert 50 <= num_updates <= 60


def test_rows_between_measured_steps_lose_nothing_of_the_path():
    training = Training(every=5).steps(61)
    training.run._main.collect()

    num_updates, _, _, start = path_of_rows(training.kept.rows())

    assert start == 0
    assert num_updates == training.run._main._log.path.path.num_updates
    assert len(training.kept.rows()) < 20


def test_rows_of_another_kind_hold_no_path():
    training = Training(kinds="sign").steps(10)
    training.run._main.collect()

    assert any(row.num_path_updates for row in training.kept.rows())
    assert not any(row.num_path_updates for row in training.kept.of_kind("sign").rows())


def test_rows_after_a_restart_name_the_new_start_and_hold_nothing_of_before():
    training = Training().steps(40)
    training.model.load_state_dict({name: value + 1.0 for name, value in training.model.state_dict().items()})
    training.steps(40)
    training.run._main.collect()

    num_updates, total, distance, start = path_of_rows(training.kept.rows())

    log = training.run._main._log.path
    assert 40 <= start < 60
    assert start == log.start
    assert num_updates == log.path.num_updates
    assert total == pytest.approx(log.path.sum_sq_norm)
    assert distance == log.path.sq_distance


def test_it_says_what_the_updates_promised_and_which_share_of_that_came(monkeypatch):
    """Where steps take less than a millisecond looks are rare, and a share is known after more steps."""
    monkeypatch.setattr(LookPlan, "adapt", lambda *_: None)
    found = Training(1e-4, planned_steps=None).steps(400).run.learning_rate()

    assert found.promised_fall_low < found.promised_fall < found.promised_fall_high
    assert 350 < found.num_promised_updates <= 400
    assert found.kept_share_low < found.kept_share < found.kept_share_high
    # half of the loss of one of two small batches is what is logged here
    assert 0.1 < found.kept_share < 0.8
    assert found.kept_share_reason is None


@pytest.mark.parametrize("make", [torch.optim.RMSprop, torch.optim.AdamW])
def test_without_a_promise_or_enough_of_it_the_reason_says_so(make):
    found = Training(3e-4, make=make).steps(20).run.learning_rate()

    assert (found.promised_fall is not None) is (make is torch.optim.AdamW)
    assert found.kept_share is None
    why = "Too few losses" if make is torch.optim.AdamW else "What the updates promise is not measured"
    assert found.kept_share_reason.startswith(why)


def test_rows_after_a_restart_hold_no_promise_of_before():
    training = Training().steps(40)
    training.model.load_state_dict({name: value + 1.0 for name, value in training.model.state_dict().items()})
    training.steps(40)
    training.run._main.collect()

    log = training.run._main._log.path
    since = [row for row in training.kept.rows() if row.step > log.start]
    assert sum(row.num_promised_updates for row in since) == log.promise.total.num_updates > 10
    assert sum(row.sum_promised_fall or 0.0 for row in since) == pytest.approx(log.promise.total.total)


@pytest.mark.parametrize(("lr", "is_off"), [(1e-3, False), (0.15, True)])
def test_a_rate_that_goes_with_another_batch_says_that_it_starts_from_one_that_is_off(lr, is_off):
    training = Training(lr).steps(110)
    training.run._advisor._server = asks(RepeatingServer(is_away=True))

    found = training.run.recommendation(examples_per_step=1000)

    said = [caution.text for caution in found.warnings if caution.code == "learning_rate_off"]
    assert found.learning_rate.current == lr
    assert bool(said) == is_off
    assert all("looks too high, more than 99 % sure" in text for text in said)
    assert str(found).count("set the rate") == is_off
