"""What to know before relying on the answer: cautions of the advice and facts about the measurement, each said once."""

from noisescale_dashboard.report.markup import cut
from noisescale_dashboard.report.reading import Reported

MAX_SHORT, MAX_LONG = 3, 6
SHORT, LONG = 130, 240
"""Characters of one on the first page and on the second."""


def in_short(found: Reported) -> tuple[list[str], int]:
    """The first few for the first page, and how many more there are."""
    texts = told(found)
    return [cut(text, SHORT) for text in texts[:MAX_SHORT]], max(0, len(texts) - MAX_SHORT)


def in_full(found: Reported) -> list[str]:
    """All of them for the second page, where the first had no room for all, and how many are left out there."""
    texts = told(found)
    if len(texts) <= MAX_SHORT and all(len(text) <= SHORT for text in texts):
        return []
    left_out = len(texts) - MAX_LONG
    more = [f"{left_out} more are not shown."] if left_out > 0 else []
    return [cut(text, LONG) for text in texts[:MAX_LONG]] + more


def told(found: Reported) -> list[str]:
    """What changes the advice first, what the job has noted last."""
    run, advice = found.run, found.advice
    texts = [*(one.text for one in advice.warnings), *(one.text for one in run.notices), *run.notes]
    return list(dict.fromkeys(texts))
