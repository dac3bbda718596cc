"""`noisescale recommend`: a language model's batch, without a server and before any run."""

import pytest

from noisescale import commands

REFUSED = {
    "no tokens": ([], "--tokens is missing"),
    "tokens below 0": (["--tokens", "-1"], "--tokens must be positive"),
    "no tokens at all": (["--tokens", "0"], "--tokens must be positive and finite, got 0"),
    "another optimizer": (
        ["--tokens", "1e9", "--optimizer", "muon"],
        "--optimizer must be one of adam and adamw, got 'muon'",
    ),
    "sequences of nothing": (
        ["--tokens", "1e9", "--sequence-length", "0"],
        "--sequence-length must be at least 1, got 0",
    ),
    "a negative size": (["--params", "-2"], "--params must be at least 1, got -2"),
    "a preference of 1": (["--tokens", "1e9", "--preference", "1"], "--preference must be between 0 and 1"),
}


def test_it_says_batch_risk_and_sources(capsys):
    asked = ["--tokens", "20e9", "--params", "1e9", "--optimizer", "AdamW", "--sequence-length", "2048"]

    assert commands.main(["recommend", *asked]) == 0

    out = capsys.readouterr().out
    assert out.startswith("batch      2.3 M [820 k, 9.5 M] tokens = 1,100 sequences of 2,048")
    assert "extrapolated" not in out


def test_a_price_is_taken_and_a_size_alone_assumes_its_tokens(capsys):
    assert commands.main(["recommend", "--params", "1e9", "--tokens-per-step", "1e6"]) == 0

    out = capsys.readouterr().out
    assert "at 1 M tokens a step" in out
    assert "20 G tokens planned, assumed: 20 a parameter" in out
    assert "matters" not in out


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_answer_is_refused_with_the_way_out(case, capsys):
    asked, message = REFUSED[case]

    assert commands.main(["recommend", *asked]) == 2

    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("name", "weight"), [("money", "0.2"), ("time", "0.8"), ("frontier", "0.833333")])
def test_a_preference_has_a_name(name, weight, capsys):
    assert commands.main(["recommend", "--tokens", "20e9", "--preference", name]) == 0
    by_name = capsys.readouterr().out
    assert commands.main(["recommend", "--tokens", "20e9", "--preference", weight]) == 0

    assert by_name == capsys.readouterr().out
    assert "ramp       a batch that grows saves 1 % (1 – " in by_name


def test_another_name_is_refused_with_those_that_there_are(capsys):
    with pytest.raises(SystemExit):
        commands.main(["recommend", "--tokens", "20e9", "--preference", "fast"])

    assert "one of money, balanced, time, frontier: got 'fast'" in capsys.readouterr().err
