"""Every reason why a noise scale has no value has words for a table and a card, once."""

import pytest

from noisescale_core.advice.parts.flags import WITHOUT_ESTIMATE
from noisescale_core.advice.parts.reasons import OF_FLAGS, OF_WINDOWS, Words, code_of, short, words_of
from noisescale_core.estimators.uncertainty import Reason


@pytest.mark.parametrize("flag", WITHOUT_ESTIMATE, ids=code_of)
def test_a_bit_without_an_estimate_has_words_for_a_table_a_card_and_a_printed_line(flag):
    words = OF_FLAGS[flag]

    assert short(code_of(flag)) == words.short
    assert not words.short.endswith(".")
    assert words_of(code_of(flag)) == words
    assert words.sentence.endswith(".")
    assert words.so_far


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_of_a_window_has_words_for_a_table_and_a_card(reason):
    words = OF_WINDOWS[reason]

    assert short(reason) == words.short
    assert not words.short.endswith(".")
    assert words.sentence.endswith(".")
    assert words.is_bug <= bool(words.next_step)


def test_codes_of_bits_and_of_windows_are_different_ones():
    assert not {code_of(flag) for flag in OF_FLAGS} & set(OF_WINDOWS)


def test_where_there_is_no_reason_there_are_no_words():
    assert short(None) is None
    assert words_of(None) == words_of("of_the_future") == Words()


def test_a_reason_that_only_a_newer_version_knows_is_said_by_its_name():
    assert short("of_the_future") == "of the future"
