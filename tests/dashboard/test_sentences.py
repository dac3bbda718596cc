"""Sentences about how a run is measured."""

from typing import Any

import pytest

from fakes_runs import RUNS, run_json
from noisescale_dashboard.answers.common import run
from noisescale_dashboard.words.kinds import KINDS, kind_named
from noisescale_dashboard.words.sentences import interval_words, measured_words, ordinal, runs_sentence


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"estimator": "micro_batches", "num_micro_batches": 8}, "8 micro-batches"),
        ({"estimator": "micro_batches", "num_micro_batches": None}, "micro-batches"),
        ({"estimator": "ranks", "num_ranks": 4, "measure_every": 1}, "4 ranks"),
        ({"estimator": "ranks", "num_ranks": None}, "all ranks"),
        ({"estimator": "ranks_and_micro_batches", "num_ranks": 3}, "3 ranks and their micro-batches"),
        ({"estimator": "per_example"}, "the gradients' norms of single examples"),
        ({"estimator": "layer_norm_proxy", "measure_every": 22}, "the norm layers alone, every 22nd step"),
        ({"estimator": "split", "num_micro_batches": 2}, "2 parts of each batch"),
        ({"estimator": "norms"}, "norms that the script logged"),
        ({"estimator": "nested_groups"}, "nested groups"),
        ({"estimator": "of_the_future"}, "of the future"),
        ({"estimator": "none"}, None),
        ({"estimator": None}, None),
    ],
)
def test_where_small_batches_come_from_is_said_in_words(fields: dict[str, Any], words: str | None) -> None:
    measured = run({**run_json(RUNS[1]), **fields})

    assert measured_words(measured) == words


@pytest.mark.parametrize(
    ("number", "words"), [(2, "2nd"), (3, "3rd"), (11, "11th"), (21, "21st"), (113, "113th"), (1003, "1,003rd")]
)
def test_ordinals_have_their_endings(number: int, words: str) -> None:
    assert ordinal(number) == words


def test_an_interval_that_is_not_there_gives_way_to_the_reason_that_the_server_says() -> None:
    data = run_json(RUNS[5])
    data["noise_scale"]["reason_text"] = "no gradient beyond chance yet"

    assert interval_words(run(data).noise_scale) == "no gradient beyond chance yet"


def test_a_missing_value_is_never_blank_though_the_server_has_no_words_for_it() -> None:
    data = run_json(RUNS[5])
    data["noise_scale"] |= {"reason": None, "reason_text": None}

    assert interval_words(run(data).noise_scale) == "not resolved"


@pytest.mark.parametrize("name", [*KINDS, "of_the_future"])
def test_every_kind_has_a_title_and_but_for_simple_a_caveat(name: str) -> None:
    kind = kind_named(name)

    assert kind.title.startswith("Noise scale") or kind.title.endswith("noise scale")
    assert (kind.caveat is None) == (name == "simple")


def test_where_no_change_is_sure_the_list_does_not_say_that_none_would_gain() -> None:
    data = run_json(RUNS[1])
    data["decision"]["decision"] = "probably_increase"

    said = runs_sentence([run(data)], 1)

    assert said.startswith("None is known to gain from another batch size, one probably would")
