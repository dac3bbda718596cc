"""Answers that are kept by what they rest on."""

from noisescale_server.services.kept_answers import KeptAnswers


def test_the_answer_that_was_not_asked_for_the_longest_goes_first():
    kept: KeptAnswers[str] = KeptAnswers(2)
    kept.keep(("a", 1), "first")
    kept.keep(("b", 1), "second")

    found = kept.find(("a", 1))
    kept.keep(("c", 1), "third")

    assert found == "first"
    assert [kept.find((name, 1)) for name in "abc"] == ["first", None, "third"]


def test_another_version_is_another_answer():
    kept: KeptAnswers[str] = KeptAnswers(2)

    kept.keep(("a", 1), "old")

    assert kept.find(("a", 2)) is None
