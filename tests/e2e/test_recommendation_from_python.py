"""The server and the job are asked about the same run: they must say the same, word for word."""

import random

import httpx
import pytest
import torch
from torch import nn

import noisescale
from app_in_process import AS_LOCAL_USER, LOCAL_TOKEN
from noisescale.ask.advisor import Advisor, beside_the_rate, recommend_in_job
from noisescale.ask.asking import NoAnswer, RecommendingServer
from noisescale_core.advice.question import Question

pytestmark = pytest.mark.processes

SAME = (
    "decision", "headline", "reason", "effect", "next_step", "step", "unit", "example", "units_per_example",
    "current_batch_size", "recommended_batch_size", "preference", "calibration", "warnings",
    "schedule_missing",
)  # fmt: skip
CLOSE = (
    "interval", "statistical_interval", "critical_batch", "exchange_rate", "learning_rate", "example_efficiency",
    "predicted", "limited", "predictions", "parallelism", "noise_scale", "rounding_regret", "next_steps",
)  # fmt: skip
"""Sums are added in another order on the server: equal to rounding."""

QUESTIONS = {
    "nothing said": {},
    "a price": {"examples_per_step": 500.0},
    "a preference and devices": {"preference": 0.8, "examples_per_device": 16, "num_devices": 4},
    "a deadline in steps": {"examples_per_step": 500.0, "max_steps": 500},
    "money and time": {"usd_per_hour_sooner": 20.0, "max_hours": 4.0, "batch_sizes": [128, 1024.5]},
    "no way": {"max_hours": 1e-6},
}


SECONDS_PER_STEP = 0.25


def log_steps(run, num_steps, *, noise, noise_scale=3000.0, batch=64, rises=False):
    """Steps by a clock of their own: at the speed of this loop their times would be noise."""
    generator = random.Random(7)
    now = 1.79e9
    run._main.now = run._main._log._now = lambda: now
    for step in range(num_steps):
        now += SECONDS_PER_STEP
        phi = noise_scale * (step / num_steps) ** 2 if rises else noise_scale
        x, y = phi * generator.gauss(1, 0.05), generator.gauss(1, noise)
        run.log_norms(
            small_batch_size=8, big_batch_size=batch, small_sq_norm=y + x / 8, big_sq_norm=y + x / batch, lr=0.1
        )


def finished_run(live_server, num_steps, **steps):
    """A run whose every step is stored, and its latest window with them."""
    run = noisescale.init(
        project="asking", task="norms", units=noisescale.Units("sequence", "tokens", per_example=1024.0),
        machine=noisescale.Machine(num_devices=4, usd_per_device_hour=2.5), config={"weight_decay": 0.1},
        planned_steps=2000,
    )  # fmt: skip
    log_steps(run, num_steps, **steps)
    run.finish()
    wait_until_stored(live_server, run.id, lambda stored: stored["finished_at"])
    return run


def wait_until_stored(url, run_id, has_arrived):
    """What was sent travels on a thread of its own."""
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER) as http:
        for _ in range(2_000):
            answer = http.get(f"/api/v1/runs/{run_id}")
            if answer.status_code == httpx.codes.OK and has_arrived(answer.json()):
                return
    raise AssertionError(f"run {run_id} never arrived")


@pytest.fixture(scope="module")
def runs(live_server, tmp_path_factory):
    """Resolved, resolved below its batch, tentative and unresolved runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOISESCALE_URL", live_server)
        patch.setenv("NOISESCALE_API_KEY", LOCAL_TOKEN)
        patch.setenv("NOISESCALE_DIR", str(tmp_path_factory.mktemp("runs")))
        return {
            "resolved": finished_run(live_server, 400, noise=0.2),
            "long": finished_run(live_server, 1500, noise=0.2),
            "too large a batch": finished_run(live_server, 400, noise=0.001, noise_scale=2.0, batch=4096),
            "tentative": finished_run(live_server, 20, noise=0.3),
            "unresolved": finished_run(live_server, 200, noise=6.0),
            "too short": finished_run(live_server, 3, noise=0.2),
            "rising": finished_run(live_server, 300, noise=0.2, rises=True),
        }


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("kind", ["resolved", "long", "too large a batch", "tentative", "unresolved", "too short"])
def test_the_server_and_the_job_say_the_same(live_server, runs, kind, asked):
    run = runs[kind]

    of_server = run.recommendation(**asked)
    of_job = recommend_in_job(run._main.measured(), Question(**asked), run_id=run.id, note=None)

    assert (of_server.source, of_job.source) == ("server", "job")
    assert {name: getattr(of_job, name) for name in SAME} == {name: getattr(of_server, name) for name in SAME}
    for name in CLOSE:
        assert numbers_of(of_job.answer[name]) == pytest.approx(numbers_of(of_server.answer[name]), rel=1e-9), name
    for name in ("noise_scale", "exchange_rate"):
        assert words_of(of_job.answer[name]) == words_of(of_server.answer[name])
    assert [stage.step for stage in stages_of(of_job)] == [stage.step for stage in stages_of(of_server)]
    # what only a server is asked for
    assert of_job.answer.keys() == of_server.answer.keys() - {"critical_batch_by_definition"}


def test_the_server_says_of_a_young_and_of_a_rising_run_that_its_noise_scale_will_not_stay(runs):
    first = {kind: run.recommendation().warnings[0] for kind, run in runs.items()}

    assert [kind for kind, caution in first.items() if caution.code == "early_in_run"] == ["tentative", "rising"]
    assert first["tentative"].text.startswith("Only 1 % of the plan is done. While a run is young its noise scale ")
    assert (
        recommend_in_job(runs["rising"]._main.measured(), Question(), run_id="", note=None).warnings[0]
        == first["rising"]
    )
    assert first["rising"].text.startswith("The noise scale has risen about 4 × since step 149 ")


def numbers_of(part):
    """All numbers of an answer's part, in the order of their names."""
    if isinstance(part, dict):
        return [number for name in sorted(part) for number in numbers_of(part[name])]
    if isinstance(part, list | tuple):
        return [number for one in part for number in numbers_of(one)]
    return [part] if isinstance(part, int | float) else []


def words_of(part):
    return {name: value for name, value in (part or {}).items() if not isinstance(value, int | float)}


def stages_of(found):
    return found.schedule.stages if found.schedule else ()


def test_the_runs_of_this_file_get_every_decision_that_needs_no_calibration(runs):
    decisions = {kind: run.recommendation().decision for kind, run in runs.items()}

    assert decisions.pop("too large a batch") == "decrease"
    assert decisions.pop("too short") == "insufficient_evidence"
    # also where no window is resolved: all steps together say that the batch is too small
    assert set(decisions.values()) == {"increase"}


def test_what_was_spent_is_the_same_to_rounding_while_each_step_is_kept_by_itself(runs):
    run = runs["resolved"]

    of_server = run.recommendation().answer
    of_job = recommend_in_job(run._main.measured(), Question(), run_id=run.id, note=None).answer

    for name in ("waste", "counterfactual"):
        assert numbers_of(of_job[name]) == pytest.approx(numbers_of(of_server[name]), rel=1e-9), name
    assert of_job["waste"]["usd"] is not None


def test_flags_are_the_same_text_from_both(runs):
    run = runs["resolved"]
    asked = {"examples_per_device": 16, "num_devices": 4}

    of_server = run.recommendation(**asked)
    of_job = recommend_in_job(run._main.measured(), Question(**asked), run_id=run.id, note=None)

    assert "--step-batch-size-schedule" in of_server.flags("megatron")
    for trainer in ("megatron", "torchtitan", "nanogpt", "huggingface"):
        assert of_job.flags(trainer) == of_server.flags(trainer)


def test_a_run_that_the_server_does_not_know_is_answered_by_the_job(live_server):
    with noisescale.init(project="asking", task="norms") as run:
        server = RecommendingServer(run.config)
        asked = server.of_run("00000000-0000-4000-8000-000000000000", Question())
        advisor = Advisor(run.config, run.faults, UnknownRun(run.config))

        found = advisor.recommend(run._main, {})

    assert isinstance(asked, NoAnswer)
    assert not asked.is_refusal
    assert (found.source, found.reason) == ("job", "No measurements yet.")
    assert found.note.endswith(" holds no record of this run yet")


class UnknownRun(RecommendingServer):
    """Asks the server about a run that never was."""

    def of_run(self, run_id, question):
        return super().of_run("00000000-0000-4000-8000-000000000000", question)


@pytest.mark.parametrize("every", [1, 3])
def test_a_real_training_is_the_same_to_both(live_server, every):
    torch.manual_seed(0)
    model = nn.Linear(20, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + 0.01 * step))
    rows = torch.randn(4096, 20)
    classes = (rows[:, :4] + 0.5 * torch.randn(4096, 4)).argmax(1)
    run = noisescale.init(project="asking", task="linear", planned_steps=600)
    run.watch(model, optimizer, small_batches="micro_batches", every=every)

    for _ in range(120):
        chosen = torch.randint(4096, (32,))
        for part in chosen.chunk(8):
            (nn.functional.cross_entropy(model(rows[part]), classes[part]) / 8).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    run.finish()
    wait_until_stored(live_server, run.id, lambda stored: stored["last_step"] == 119)

    of_server = run.recommendation(examples_per_step=50)
    of_job = recommend_in_job(run._main.measured(), Question(examples_per_step=50), run_id=run.id, note=None)
    of_job = beside_the_rate(of_job, run.learning_rate)
    assert of_server.source == "server"
    assert of_server.warnings[-1].code == "learning_rate_off"
    same = [name for name in SAME if name not in ("effect", "next_step")]  # hours of the last stretch may differ
    assert {name: getattr(of_job, name) for name in same} == {name: getattr(of_server, name) for name in same}
    assert numbers_of(of_job.answer["learning_rate"]) == pytest.approx(numbers_of(of_server.answer["learning_rate"]))
    assert of_server.noise_scale.state != "unresolved"


def test_before_a_run_the_server_advises_from_its_earlier_runs(runs):
    found = noisescale.recommend("norms", project="asking", examples_per_step=500)

    assert (found.source, found.decision, found.run_id, found.step) == ("server", "start", None, None)
    assert found.interval.low < found.recommended_batch_size < found.interval.high
    assert found.answer["task"] == "norms"
    assert found.headline in str(found)


def test_before_a_run_of_a_task_without_any_the_server_s_reason_is_passed_on(runs):
    found = noisescale.recommend("never trained", project="asking")

    assert found.source == "nowhere"
    assert "project 'asking' has no task 'never trained'" in found.reason
    assert found.next_step == "Train a few hundred steps with watch() and ask run.recommendation()."
