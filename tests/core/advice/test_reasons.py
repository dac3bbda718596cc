"""Every reason why a noise scale has no value has words for a table and a card, once."""

import pytest

from noisescale_core.advice.words.flags import WITHOUT_ESTIMATE
from noisescale_core.advice.words.reasons import OF_FLAGS, OF_WINDOWS, code_of, sentence, short
from noisescale_core.estimators.uncertainty import Reason


@pytest.mark.parametrize("flag", WITHOUT_ESTIMATE, ids=code_of)
def test_a_bit_without_an_estimate_has_words_for_a_table_a_card_and_a_printed_line(flag):
    words = OF_FLAGS[flag]

    assert short(code_of(flag)) == words.short
    assert not words.short.endswith(".")
    assert sentence(code_of(flag)) == words.sentence
    assert words.sentence.endswith(".")
    assert words.so_far


def test_every_reason_of_a_window_has_words_for_a_table_and_none_for_a_card():
    assert set(OF_WINDOWS) == set(Reason)
    assert all(short(reason) == words for reason, words in OF_WINDOWS.items())
    assert all(sentence(reason) is None for reason in OF_WINDOWS)


def test_where_there_is_no_reason_there_are_no_words():
    assert short(None) is None
    assert sentence(None) is None


def test_a_reason_that_only_a_newer_version_knows_is_said_by_its_name():
    assert short("of_the_future") == "of the future"
