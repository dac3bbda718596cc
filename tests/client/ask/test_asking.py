import json

import numpy
import pytest

import noisescale
from client_runs import make_kept_run
from noisescale.ask.asking import NoAnswer, with_query
from noisescale_core.advice.parts.parts import Interval
from noisescale_core.advice.question import Question
from noisescale_core.errors import ConfigError
from recommendation_answers import RepeatingServer, asks, make_answer

RUN_ID = "7d1f0c9e-2222-4333-8444-555566667777"


def test_every_field_of_the_answer_is_carried_as_it_was_said():
    http = RepeatingServer()

    found = asks(http).of_run(RUN_ID, Question())

    assert (found.source, found.decision, found.headline) == ("server", "increase", "Raise the batch to 1,024")
    assert (found.current_batch_size, found.recommended_batch_size) == (32, 1024)
    assert found.interval == Interval(992.0, 140.0, 7200.0)
    assert found.statistical_interval == Interval(992.0, 874.0, 1120.0)
    assert found.learning_rate.candidates == (0.082, 0.164, 0.328)
    assert [(stage.step, stage.batch_size) for stage in found.schedule.stages] == [(400, 512), (711, 1024)]
    assert (found.predicted.steps_factor.high, found.waste.fraction.value) == (0.4, 0.12)
    assert [caution.code for caution in found.warnings] == ["uncalibrated"]
    assert (found.rescaling[0].field, found.rescaling[0].after) == ("weight_decay", 0.2)
    assert dict(found.answer) == make_answer()
    assert http.num_open == 0


def test_no_field_of_the_answer_but_details_of_its_parts_is_known_by_the_raw_answer_alone():
    found = asks(RepeatingServer()).of_run(RUN_ID, Question())

    assert [name for name, value in make_answer().items() if value is not None and getattr(found, name) is None] == []


def test_what_was_asked_is_in_the_query_and_nothing_else():
    http = RepeatingServer()

    asks(http).of_run(RUN_ID, Question(examples_per_step=200, max_hours=5.5, batch_sizes=[64, 128]))

    query = [("examples_per_step", "200"), ("max_hours", "5.5"), ("batch_size", "64"), ("batch_size", "128")]
    assert http.asked == [(f"/api/v1/runs/{RUN_ID}/recommendation", query)]


def test_an_answer_of_a_newer_or_an_older_server_is_read_as_far_as_it_goes():
    newer = make_answer(tomorrow={"a": 1}, interval=interval_with_more(), decision="increase, limited")
    older = {"decision": "keep", "headline": "Keep 32", "reason": "Within 2 ×.", "waste": {"examples": 3}}

    of_newer = asks(RepeatingServer(body=newer)).of_run(RUN_ID, Question())
    of_older = asks(RepeatingServer(body=older)).of_run(RUN_ID, Question())

    assert (of_newer.decision, of_newer.interval.low) == ("increase, limited", 140.0)
    assert of_newer.answer["tomorrow"] == {"a": 1}
    assert (of_older.decision, of_older.waste, of_older.interval, of_older.warnings) == ("keep", None, None, ())
    assert "Keep 32" in str(of_older)


def interval_with_more():
    return make_answer()["interval"] | {"model": {"low": 150.0, "high": 6800.0}}


def test_a_server_that_does_not_answer_is_left_alone_for_a_minute():
    now = [0.0]
    http = RepeatingServer(is_away=True)
    server = asks(http, lambda: now[0])

    first, second = server.of_run(RUN_ID, Question()), server.of_run(RUN_ID, Question())
    now[0], http.is_away = 61.0, False
    third = server.of_run(RUN_ID, Question())

    assert first == second == NoAnswer("no answer from http://fake: connection refused")
    assert len(http.asked) == 2
    assert third.source == "server"


def test_a_refused_question_says_which_field_and_why_and_is_not_asked_of_the_job():
    problem = {"title": "Invalid input", "detail": "interruptions leave no time to work"}
    run, _ = make_kept_run()
    run._advisor._server = asks(RepeatingServer(422, problem))

    found = run.recommendation(preference=0.7)

    assert found.headline == "The question was refused"
    assert found.reason == "http://fake says: interruptions leave no time to work"
    assert (found.source, found.decision) == ("nowhere", "insufficient_evidence")


def test_an_unknown_keyword_names_the_known_ones_and_never_reaches_the_training():
    run, _ = make_kept_run(strict=False)

    found = run.recommendation(prefrence=0.5)

    assert "recommendation() takes no 'prefrence': known are preference, examples_per_step" in found.reason


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"max_steps": "many"}, "max_steps must be a positive number, got 'many'"),
        ({"max_hours": float("nan")}, "max_hours must be a positive number, got nan"),
        ({"examples_per_step": -1}, "examples_per_step must be a positive number, got -1"),
        ({"preference": 2}, "preference must be between 0.001 and 0.999, got 2"),
        ({"num_devices": 0}, "num_devices must be a positive number, got 0"),
        ({"examples_per_device": 1.5}, "examples_per_device must be a whole number, got 1.5"),
        ({"batch_sizes": 64}, "batch_sizes must be a list of numbers, got 64"),
        ({"batch_sizes": [64, True]}, "each of batch_sizes must be a positive number, got True"),
    ],
)
def test_a_value_that_makes_no_sense_is_named_and_never_reaches_the_training(asked, said):
    run, _ = make_kept_run()

    assert run.recommendation(**asked).reason == said


def test_numbers_of_numpy_are_numbers():
    question = Question.of({"num_devices": numpy.int64(8), "preference": numpy.float64(0.5), "max_steps": None})

    assert question == Question(num_devices=8, preference=0.5)
    assert with_query("/x", question) == "/x?preference=0.5&num_devices=8"


def test_a_page_that_is_no_recommendation_is_not_taken_for_one():
    found = asks(RepeatingServer(200, "<html>a proxy's login page</html>")).of_run(RUN_ID, Question())

    assert found == NoAnswer("http://fake answered something else than a recommendation", was_there=True)


def test_flags_come_in_the_trainer_s_words_from_the_same_question():
    http = RepeatingServer()
    found = asks(http).of_run(RUN_ID, Question(preference=0.7))
    http._text = '--step-batch-size-schedule "0:32 409600:512"\n'

    flags = found.flags("megatron")

    assert flags == '--step-batch-size-schedule "0:32 409600:512"\n'
    assert http.asked[1][1] == [("preference", "0.7"), ("format", "megatron")]


def test_flags_that_cannot_be_written_are_a_comment_that_says_why():
    http = RepeatingServer()
    found = asks(http).of_run(RUN_ID, Question())
    http._status, http._text = 422, json.dumps({"detail": "there is no schedule to write: planned_steps"})

    assert (
        found.flags("nanogpt")
        == "# no flags for nanogpt: http://fake says: there is no schedule to write: planned_steps\n"
    )


def test_before_a_run_the_task_is_asked_for():
    http = RepeatingServer(body=make_answer(run_id=None, step=None))

    found = noisescale.recommend("char-lm", "AdamW", "tiny stories", server=asks(http), examples_per_step=100)

    path, query = http.asked[0]
    assert path == "/api/v1/projects/tiny%20stories/tasks/char-lm/recommendation"
    assert sorted(query) == [("examples_per_step", "100"), ("optimizer", "AdamW")]
    assert (found.source, found.run_id, found.step) == ("server", None, None)


def test_before_a_run_without_a_server_it_says_how_to_get_one(monkeypatch):
    monkeypatch.setenv("NOISESCALE_URL", "http://127.0.0.1:1")

    found = noisescale.recommend("char-lm")

    assert "there is none: no answer from http://127.0.0.1:1" in found.reason
    assert "`noisescale up`" in found.next_step


def test_before_a_run_a_task_that_the_server_does_not_know_is_no_missing_server():
    http = RepeatingServer(404, {"detail": "no task 'char-lm' in project 'default'"})

    found = noisescale.recommend("char-lm", server=asks(http))

    assert found.reason == "http://fake says: no task 'char-lm' in project 'default'."
    assert found.next_step == "Train a few hundred steps with watch() and ask run.recommendation()."


def test_a_run_that_has_not_arrived_yet_is_answered_by_the_job_and_told_to_create_nothing():
    unknown = {"type": "/errors/run-not-found", "detail": "no run has the id 7d1f: list them, or create it"}
    run, _ = make_kept_run()
    run._advisor._server = asks(RepeatingServer(404, unknown))
    run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=2.0, big_sq_norm=1.0)

    found = run.recommendation()

    assert (found.source, found.note) == ("job", "http://fake holds no record of this run yet")
    assert "no run has the id" not in str(found)


def test_an_answer_that_is_behind_the_job_says_so():
    run, _ = make_kept_run()
    run._advisor._server = asks(RepeatingServer())
    run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=2.0, big_sq_norm=1.0, step=1234)

    found = run.recommendation()

    assert (found.step, found.note) == (399, "this job is at step 1,234")
    assert str(found).endswith("the server, step 399; this job is at step 1,234")


def test_before_a_run_a_wrong_argument_is_an_error_at_once():
    with pytest.raises(ConfigError, match="takes no 'taks'"):
        noisescale.recommend("char-lm", taks=1)


def test_a_disabled_client_asks_nobody_and_says_so():
    run, _ = make_kept_run(mode="disabled")

    found = run.recommendation()

    assert found.reason == "The client is disabled (mode='disabled'), so nothing is measured."
    assert "NOISESCALE_MODE" in str(found)
