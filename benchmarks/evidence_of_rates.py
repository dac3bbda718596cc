"""What docs/evidence.md says of learning rates: whether verdicts are right, and what `follow` does in programs."""

from collections.abc import Iterator, Sequence

from evidence_words import number, paragraph, source, value
from results_file import read

SHARES = ("12", "25", "50")
AIMS = {
    "12": "aim: said of 45 %, 82 % right", "25": "aim: said of 45 %, 88 % right", "50": "aim: 93 % right",
}  # fmt: skip
TOO_LOW_FOUND = 85
SETTINGS = ("SGD", "momentum", "Adam")
PROGRAMS = ("plain loop", "Lightning", "Trainer")
STARTS = {"0.25": "a quarter", "1": "the best rate", "4": "four times"}


def verdicts() -> Iterator[str]:
    """Of each family and schedule how often a side is named, and how often rightly."""
    rows = read("rates")
    figures = {row["figure"]: row for row in rows}
    yield "## The learning rate: are verdicts right\n"
    yield paragraph(
        "Runs of eight held-out tasks after a warm-up, at rates from an eighth to eight times the best one; how many "
        "are said to be too low or too high at a share of the plan, and how many of these rightly."
    )
    yield f"| optimizer, rate | {' | '.join(f'{share} % of the plan ({AIMS[share]})' for share in SHARES)} |"
    yield "|---" * (1 + len(SHARES)) + "|"
    settings = [f"{name}, {schedule}" for name in SETTINGS for schedule in ("constant", "cosine")]
    for setting in ("all", *settings):
        cells = [_said(rows, f"{setting}, {share} % of the plan: ") for share in SHARES]
        yield f"| {setting} | {' | '.join(cells)} |"
    yield ""
    found = [_of(rows, f"all, {share} % of the plan: 4 × too low, found") for share in SHARES]
    spread = [
        value(figures, f"all, {share} % of the plan: error over stated spread, rms as the prior weighs rates", 2)
        for share in SHARES
    ]
    yield paragraph(
        f"Rates four times too low are found in {', '.join(found[:-1])} and {found[-1]} % (aim: {TOO_LOW_FOUND} % at "
        f"25 %, not reached); errors are {', '.join(spread[:-1])} and {spread[-1]} times the stated spread (aim: 0.85 "
        "to 1.15)."
    )
    yield source("rates")


def _said(rows: Sequence[dict[str, str]], begin: str) -> str:
    return f"said of {_of(rows, f'{begin}verdicts that name a side')} %, {_of(rows, f'{begin}of these right')} % right"


def _of(rows: Sequence[dict[str, str]], begin: str) -> str:
    """The figure that begins so: how many runs it is of follows."""
    [found] = [row["value"] for row in rows if row["figure"].startswith(begin)]
    return number(found, 0)


def in_programs() -> Iterator[str]:
    """What `noisescale.follow` does in ordinary programs."""
    figures = {row["figure"]: row for row in read("following_programs")}
    yield paragraph(
        "**In ordinary programs**: a small GPT on the source text of Python's library, AdamW, warm-up and cosine, 600 "
        "steps, two seeds, the rate alone permitted; loss on held-out text at the end in nats."
    )
    yield "| program | rate at the start | kept | followed | of the plan to the loss of the kept run |"
    yield "|---|---|---|---|---|"
    for program in PROGRAMS:
        for start, words in STARTS.items():
            begin = f"{program}, {start} × the best rate: "
            kept, ours = (value(figures, f"{begin}loss at the end, {how}", 3) for how in ("kept", "followed"))
            share = value(figures, f"{begin}share of the plan to the loss of the kept run", 0)
            there = "not in both runs" if share == "nan" else f"{share} %"
            yield f"| {program} | {words} | {kept} | {ours} | {there} |"
    yield ""
    yield source("following_programs")
