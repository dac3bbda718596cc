"""The ledger as strips: where the gaps lie, and the words for them."""

from noisescale_dashboard.answers.series import LostRange, Stream
from noisescale_dashboard.run.records import MAX_GAPS, MAX_STREAMS, segments, strips, verdict

ENDED = "2026-11-20T12:00:00Z"


def stream(*lost: tuple[int, int], stored: int = 90, rejected: int = 0, finished: str | None = ENDED) -> Stream:
    num_lost = sum(last - first + 1 for first, last in lost)
    return Stream(
        "a" * 32, num_stored=stored, num_lost=num_lost, num_rejected=rejected, acked_seq=stored + num_lost + rejected,
        last_step=4100, finished_at=finished, lost=tuple(LostRange(*ends, "memory_full") for ends in lost),
    )  # fmt: skip


def test_gaps_stand_where_the_lost_records_were() -> None:
    found = list(segments(stream((11, 15), (96, 100), stored=90)))

    assert found == [("stored", 10), ("lost", 5), ("stored", 80), ("lost", 5)]


def test_every_record_has_its_place_once() -> None:
    for one in (stream(), stream((1, 3)), stream((2, 2), rejected=4), stream((1, 1), stored=0), stream(stored=0)):
        assert sum(length for _, length in segments(one)) == one.acked_seq


def test_more_gaps_than_a_strip_can_show_stand_together_at_its_end() -> None:
    many = stream(*((3 * i + 1, 3 * i + 1) for i in range(100)), stored=200)

    found = list(segments(many))

    assert sum(length for kind, length in found if kind == "lost") == 100
    assert sum(kind == "lost" for kind, _ in found) == MAX_GAPS + 1
    assert found[-1] == ("lost", 100 - MAX_GAPS)


def test_the_words_are_those_of_the_promise() -> None:
    assert verdict(stream()) == ("stored", "complete")
    assert verdict(stream((1, 12))) == ("lost", "12 declared lost")
    assert verdict(stream((1, 2), rejected=3, finished=None)) == ("lost", "2 declared lost, 3 rejected, stream open")
    assert verdict(stream(finished=None)) == ("open", "stream open, last seen at step 4,100")


def test_a_run_of_many_processes_shows_the_newest_and_says_so() -> None:
    drawn = strips([(str(number), stream()) for number in range(1, MAX_STREAMS + 6)])

    assert "5 earlier processes" in str(drawn[0])
    assert len(drawn[1].children) == MAX_STREAMS
    assert strips([]) == []
