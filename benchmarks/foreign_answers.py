"""Jobs behind a proxy that answers in the server's place: 1,000 in simulated time, 60 real ones, and planted bugs.

The proxy answers every status from 200 to 599 with nothing, a page, JSON of its own and our own problems, for 1 to
300 s (real ones: 1 to 20 s), at the beginning, in the middle and at the end of jobs, of the adoption of what earlier
ones have left, and of `noisescale sync`; some have a limit of 64 kB or of 1 MB for a body. Half of its own answers
have headers that no client should meet: other encodings and lengths than the body's, cookies that are not ASCII,
60 kB of padding, times to wait beyond every calendar. In the end every record is stored once or declared lost, and no
folder was deleted undeclared.
"""

import argparse
import itertools
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from results_file import Figure, write
from smoke import size

sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))

from foreign_bugs import BUGS
from real_jobs import RealOutcome, real_jobs
from simulated_jobs import Outcome, Story, cards_of, stories, told
from simulated_proxy import STATUSES

JOBS = 1000
REAL_JOBS = 60
WORKERS = 2
MORE_SEED = 100


def one(story: Story, folder: str) -> Outcome:
    """A story in a process of the pool."""
    return told(story, Path(folder) / str(os.getpid()) / str(story.seed))


def simulated(chosen: Sequence[Story], folder: str) -> list[Outcome]:
    """What becomes of each."""
    with ProcessPoolExecutor(WORKERS) as pool:
        found = list(pool.map(one, chosen, [folder] * len(chosen), chunksize=10))
    for story, outcome in zip(chosen, found, strict=True):
        if not is_good(story, outcome):
            print(f"seed {story.seed}: {outcome}", flush=True)
    return found


def with_all_cards(chosen: list[Story], folder: str) -> list[Outcome]:
    """The outcomes of these stories, and of more of them until everything that the proxy can say has come up."""
    outcomes = simulated(chosen, folder)
    for seed in range(MORE_SEED, MORE_SEED + size(10, 0)):
        missing = set(cards_of(STATUSES)) - {card for outcome in outcomes for card in outcome.answered}
        if not missing:
            break
        more = stories(max(20, len(missing) // 3), 1000 * seed, sorted(missing))
        outcomes += simulated(more, folder)
        chosen += more
    return outcomes


def is_good(story: Story, outcome: Outcome) -> bool:
    """Stored once or declared; where nothing but foreign answers came, stored."""
    return outcome.is_good and (not story.is_foreign or outcome.num_stored == outcome.num_logged)


def figures_of(chosen: Sequence[Story], outcomes: Sequence[Outcome]) -> list[Figure]:
    """The simulated jobs."""
    answered = sum((outcome.answered for outcome in outcomes), Counter[tuple[int, str]]())
    foreign = [outcome for story, outcome in zip(chosen, outcomes, strict=True) if story.is_foreign]
    hours = sum(outcome.seconds for outcome in outcomes) / 3600

    def total(name: str, among: Sequence[Outcome] = outcomes) -> int:
        return sum(getattr(outcome, name) for outcome in among)

    return [
        Figure("simulated: jobs with a successor, an adoption and a sync", len(outcomes), "", "1,000"),
        Figure("simulated: hours of their clocks", hours, "h"),
        Figure("simulated: answers of the proxy", answered.total(), ""),
        Figure("simulated: pairs of a status and a kind of body that came", len(answered), "", "1,599"),
        Figure("simulated: bodies over the limit of 64 kB or 1 MB", total("num_too_large"), ""),
        Figure("simulated: records logged", total("num_logged"), "records"),
        Figure("simulated: records stored", total("num_stored"), "records"),
        Figure("simulated: records declared lost", total("num_declared"), "records"),
        Figure("simulated: records neither stored nor declared", total("num_unsaid"), "records", "0"),
        Figure("simulated: records doubled", total("num_doubled"), "records", "0"),
        Figure(
            "simulated: deliveries ended or folders marked without the server's word",
            total("num_wrongly_ended"),
            "",
            "0",
        ),
        Figure("simulated: untrue sentences at the end of a job", total("num_untrue"), "", "0"),
        Figure("simulated: jobs with foreign answers alone", len(foreign), ""),
        Figure(
            "simulated: of whose records not stored",
            total("num_logged", foreign) - total("num_stored", foreign),
            "records",
            "0",
        ),
    ]


def planted(folder: str, most: int) -> list[Figure]:
    """Which bugs are caught, each within so many stories in which it may show."""
    found = []
    for name, bug in itertools.islice(BUGS.items(), size(None, 0)):
        chosen = stories(most, 11, cards_of(bug.statuses))
        with bug.planted():
            at = next((at for at, story in enumerate(chosen, 1) if not is_good(story, one(story, folder))), 0)
        print(f"planted {name}: {f'caught in story {at}' if at else 'NOT CAUGHT'}", flush=True)
        found.append(Figure(f"planted {name}: caught in story number", at, "", "above 0"))
    return found


def figures_of_real(found: Sequence[RealOutcome]) -> list[Figure]:
    """The real jobs."""

    def total(name: str) -> int:
        return sum(getattr(outcome, name) for outcome in found)

    answered = {card for outcome in found for card in outcome.answered}
    return [
        Figure("real: jobs", len(found), "", "60"),
        Figure("real: answers of the proxy", total("num_answers"), ""),
        Figure("real: pairs of a status and a kind of body that came", len(answered), ""),
        Figure("real: records logged", total("num_logged"), "records"),
        Figure("real: records stored", total("num_stored"), "records"),
        Figure("real: records declared lost", total("num_declared"), "records"),
        Figure("real: records neither stored nor declared", total("num_unsaid"), "records", "0"),
        Figure("real: records doubled", total("num_doubled"), "records", "0"),
    ]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=size(JOBS, 10))
    parser.add_argument("--real", type=int, default=size(REAL_JOBS, 2))
    parser.add_argument("--planted", type=int, default=300, help="stories for each planted bug, at most")
    arguments = parser.parse_args()
    chosen = stories(arguments.jobs)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        outcomes = with_all_cards(chosen, folder)
        real = real_jobs(arguments.real, Path(folder))
        bugs = planted(folder, arguments.planted)
    figures = [*figures_of(chosen, outcomes), *figures_of_real(real), *bugs]
    write("foreign_answers", figures, command="python benchmarks/foreign_answers.py")
    is_all_good = all(map(is_good, chosen, outcomes)) and all(outcome.is_good for outcome in real)
    if not is_all_good or any(not figure.value for figure in bugs):
        raise SystemExit("lost, doubled, untrue, or a planted bug was missed: see above")


if __name__ == "__main__":
    main()
