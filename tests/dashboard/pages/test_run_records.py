"""What became of a run's records, in words: what is not shown is counted."""

from noisescale_dashboard.answers.series import LostRange, Stream
from noisescale_dashboard.run.records import ledger_table, losses


def test_of_lost_records_the_first_ranges_are_named_and_the_others_counted() -> None:
    lost = tuple(LostRange(seq, seq, "memory_full") for seq in range(2, 202, 2))

    said = losses([Stream("a", num_lost=120, num_lost_ranges=120, lost=lost)])

    assert said[:5] == [f"Process 1, records {seq} – {seq}: memory full" for seq in range(2, 12, 2)]
    assert said[5:] == ["Process 1: 115 more ranges of lost records"]


def test_of_few_lost_records_all_are_named() -> None:
    assert losses([Stream("a", num_lost=1, num_lost_ranges=1, lost=(LostRange(2, 2, "trimmed"),))]) == [
        "Process 1, records 2 – 2: trimmed"
    ]


def test_of_the_steps_shown_the_first_ranges_are_named_and_the_others_counted() -> None:
    few, many = (
        Stream("a", num_live_ranges=1, live_steps=((0, 3),)),
        Stream("b", num_live_ranges=7, live_steps=((5, 9),)),
    )

    assert "0 – 3" in str(ledger_table([few, many]))
    assert "5 – 9 and 6 more ranges" in str(ledger_table([few, many]))
    assert "0 – 3 and" not in str(ledger_table([few, many]))
