import random
from types import SimpleNamespace

import pytest
import torch

import noisescale
from client_runs import make_batch, make_kept_run, make_model
from noisescale.ask.advisor import Advisor
from noisescale.ask.recommendation import Recommendation
from recommendation_answers import RepeatingServer, asks


def make_run(num_steps=400, *, noise=0.2, strict=True, batch=64, **settings):
    """A run of whose norms the noise scale is 3,000, with nobody to ask."""
    run, _ = make_kept_run(strict=strict, example="sequence", **settings)
    run._advisor._server = asks(RepeatingServer(is_away=True))
    generator = random.Random(1)
    for _ in range(num_steps):
        x, y = 3000 * generator.gauss(1, 0.05), generator.gauss(1, noise)
        run.log_norms(
            small_batch_size=8, big_batch_size=batch, small_sq_norm=y + x / 8, big_sq_norm=y + x / batch, lr=0.1
        )
    return run


def test_without_a_server_the_job_decides_from_its_own_measurements():
    found = make_run().recommendation()

    assert (found.source, found.decision, found.recommended_batch_size) == ("job", "increase", 4096)
    assert found.interval.low < found.statistical_interval.low < 3000 < found.statistical_interval.high
    assert found.note == "no answer from http://fake: connection refused"
    assert found.learning_rate.current == 0.1
    assert found.waste.fraction.value == pytest.approx(64 / (64 + 3000), rel=0.1)
    assert found.waste.covered > 0.95


def test_what_the_job_cannot_know_is_said_and_not_guessed():
    found = make_run().recommendation(max_hours=2)

    assert found.calibration.state == "uncalibrated"
    assert "max_hours" in found.reason
    assert found.schedule is None
    assert found.schedule_missing == "A schedule needs planned_steps beyond now."


def test_mode_offline_asks_nobody():
    http = RepeatingServer()
    run = make_run(8)
    run._advisor = Advisor(SimpleNamespace(mode="offline"), run.faults, asks(http))

    found = run.recommendation()

    assert (found.source, found.note, http.asked) == ("job", "mode 'offline' asks no server", [])


def test_a_price_out_of_range_is_refused_in_words():
    found = make_run(20).recommendation(preference=2)

    assert found.headline == "The question was refused"
    assert "preference must be between 0.001 and 0.999, got 2" in found.reason


@pytest.mark.parametrize(
    ("num_steps", "noise", "said"),
    [
        (0, 0.2, "No measurements yet."),
        (3, 0.2, "Only 3 measured steps so far; the first estimate takes 8."),
    ],
)
def test_before_the_noise_scale_is_known_the_reason_says_what_is_missing(num_steps, noise, said):
    found = make_run(num_steps, noise=noise).recommendation()

    assert (found.decision, found.recommended_batch_size) == ("insufficient_evidence", None)
    assert found.reason.startswith(said)
    assert "not enough evidence" in str(found).lower()


def test_one_small_batch_a_step_is_named_as_the_reason():
    run = make_run(0)
    for _ in range(20):
        run.log_norms(small_batch_size=64, big_batch_size=64, small_sq_norm=2.0, big_sq_norm=2.0)

    found = run.recommendation()

    assert found.reason == "Each step has one small batch, and one alone cannot separate signal from noise."


def test_inside_a_loop_it_collects_the_held_steps_and_changes_no_gradient():
    def train(asking):
        run, _ = make_kept_run()
        run._advisor._server = asks(RepeatingServer(is_away=True))
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run.watch(model, optimizer, small_batches="micro_batches")
        inputs, classes = make_batch(32)
        found = None
        for _ in range(12):
            for part, labels in zip(inputs.chunk(4), classes.chunk(4), strict=True):
                (torch.nn.functional.cross_entropy(model(part), labels) / 4).backward()
            run.log_gradients()
            found = run.recommendation() if asking else None
            optimizer.step()
            optimizer.zero_grad()
        return found, [parameter.detach().clone() for parameter in model.parameters()]

    found, asked = train(True)
    _, silent = train(False)

    assert found.step == 11
    assert found.answer["noise_scale"]["num_updates"] == 12
    assert all(torch.equal(one, other) for one, other in zip(asked, silent, strict=True))


def test_a_fault_of_ours_never_reaches_the_training(monkeypatch):
    run = make_run(20, strict=False)
    monkeypatch.setattr("noisescale.ask.advisor.recommend_in_job", lambda *_, **__: 1 / 0)

    found = run.recommendation()

    assert isinstance(found, Recommendation)
    assert "error inside noisescale" in found.reason
    assert run.faults.count == 1


def test_after_the_end_of_a_run_it_still_answers():
    run = make_run()
    run.finish()

    assert run.recommendation().decision == "increase"


def test_an_optimizer_of_unknown_name_is_said():
    run = make_run(0, strict=False)

    assert "name must be one that watch() was given" in run.recommendation("critic").reason


def test_flags_of_the_job_s_own_schedule():
    run = make_run(planned_steps=1000)

    found = run.recommendation(examples_per_device=16, num_devices=4)

    assert found.schedule.stages[0].step == 400
    assert f"0:64 25600:{found.schedule.stages[0].batch_size}" in found.flags("megatron")
    assert found.flags("excel").startswith("# no flags for excel: known are megatron, ")


def test_a_language_model_is_answered_by_published_sweeps_without_a_server():
    found = noisescale.recommend(tokens=20e9, sequence_length=2048, mode="offline")

    assert (found.source, found.decision, found.recommended_batch_size) == ("published", "start", 1024)
    assert "from           published sweeps" in str(found)


def test_what_published_sweeps_do_not_answer_is_a_config_error():
    with pytest.raises(noisescale.ConfigError, match="got 'Lion'"):
        noisescale.recommend(optimizer="Lion", tokens=20e9, mode="offline")
