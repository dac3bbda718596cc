"""A run and a recommendation in a notebook: all that is said is there, nothing in it is code, and no colour is ours."""

import re
from xml.etree import ElementTree

import pytest

import noisescale
from client_runs import make_kept_run
from noisescale_core.advice.question import Question
from recommendation_answers import RepeatingServer, asks, make_answer
from runs_of_known_noise import log_steps

HOSTILE = '</pre><script>alert("1")</script><img src=x onerror=alert(1)> & \x00'


def parts_of(found):
    """All that a recommendation says, in lines as it is printed, without their names."""
    return [line[17:] for line in str(found).splitlines()[1:]]


@pytest.fixture
def nobody_is_asked(monkeypatch):
    monkeypatch.setattr("httpx.Client", None)


def made_run(**settings):
    run, _ = make_kept_run(**settings)
    return run


def words(card):
    """What a reader sees, and that the HTML is well-formed."""
    return " ".join("".join(ElementTree.fromstring(card).itertext()).split())


def test_a_run_shows_its_noise_scale_its_course_and_what_to_do(nobody_is_asked):
    run = made_run(example="<b>", mode="offline")
    log_steps(run, noise_scale=3000.0, batch=64)

    card = run._repr_html_()

    said = run.recommendation()
    assert said.headline.startswith("Raise the batch to ")
    assert words(card).startswith(f"default/default · step 399Noise scale: {run.noise_scale()}noise scale so far, ")
    assert "<b>s [" in words(card)
    assert said.headline in words(card)
    assert re.search(r"9\d %likely to be cheapersaves \d+ %on averagesaves \d+ %in the worst case of 20", words(card))
    (line,) = re.findall(r'<polyline points="([^"]+)"', card)
    assert len(line.split()) > 50
    assert re.search(r'aria-label="noise scale so far, from [\d,]+ to [\d,]+"', card)


def test_a_finished_run_shows_itself_still(nobody_is_asked):
    run = made_run()
    log_steps(run)
    run.finish()

    assert "Noise scale: " in words(run._repr_html_())


@pytest.mark.parametrize("settings", [{}, {"mode": "disabled"}])
def test_a_run_without_a_step_says_so_and_draws_nothing(nobody_is_asked, settings):
    card = made_run(**settings)._repr_html_()

    assert "<svg" not in card
    assert "Noise scale: not resolved yet" in words(card)


def test_a_run_that_cannot_be_shown_raises_nothing(monkeypatch):
    run = made_run(strict=False)
    monkeypatch.setattr(run._main, "noise_scale", lambda kind: 1 / 0)

    assert run._repr_html_() is None
    assert run.faults.count == 1


def test_a_recommendation_of_a_server_shows_its_odds_and_all_of_its_text():
    odds = {
        "probability": 0.797,
        "saving": 0.42,
        "worst_case": 0.77,
        "present_regret": 1.0,
        "regret": 0.3,
        "assumes": "",
    }
    found = asks(RepeatingServer(body=make_answer(odds=odds))).of_run("7d1f", Question())

    said = words(found._repr_html_())

    assert said.startswith("Raise the batch to 1,02479 %likely to be cheapersaves 42 %on averagecosts 77 % morein the")
    assert all(line.strip() in said for line in parts_of(found))


def test_a_recommendation_of_a_job_draws_the_course_of_its_run():
    run = made_run(mode="offline")
    log_steps(run)

    found = run.recommendation()

    assert len(found.course) == 100
    assert "<svg" in found._repr_html_()
    assert "course" not in found.answer
    assert "course" not in repr(found)


def test_where_nothing_can_be_said_there_are_no_odds():
    assert "likely" not in noisescale.Recommendation(reason="There is no server.")._repr_html_()


def test_nothing_that_is_said_becomes_code():
    fields = dict.fromkeys(("headline", "reason", "effect", "next_step", "unit", "example"), HOSTILE)
    found = asks(RepeatingServer(body=make_answer(**fields))).of_run("7d1f", Question())

    card = found._repr_html_().replace("\x00", "")

    tags = {element.tag for element in ElementTree.fromstring(card).iter()}
    assert tags <= {"div", "span", "svg", "polyline", "details", "summary"}
    assert "alert" in words(card)


def test_no_colour_is_ours_so_that_a_dark_page_is_as_readable_as_a_light_one():
    run = made_run()
    log_steps(run)

    colours = re.findall(r"(?:color|stroke|fill|background)[=:]\"?([^;\"]+)", run._repr_html_())

    assert set(colours) == {"inherit", "currentColor", "none"}
