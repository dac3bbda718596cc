"""What to know before relying on the answer: cautions of the advice and facts about the measurement, each said once."""

import re

from noisescale_dashboard.report.markup import cut
from noisescale_dashboard.report.reading import Reported

MAX_SHORT, MAX_LONG = 3, 6
SHORT, LONG = 130, 240
"""Characters of one where there are several: on the first page, of whole sentences, and on the second."""
ROOM = 400
"""Characters that the first page has room for: together they may stand there in full."""
_END = re.compile(r"(?<=[.!?]) ")


def in_short(found: Reported) -> tuple[list[str], int]:
    """The first few for the first page, and how many more there are: what would have to be cut waits for the second."""
    texts = told(found)
    if is_whole(texts):
        return texts, 0
    short = [text for text in texts[:MAX_SHORT] if len(_END.split(text)[0]) <= SHORT] or texts[:1]
    return [whole_sentences(text, SHORT) for text in short], len(texts) - len(short)


def in_full(found: Reported) -> list[str]:
    """All of them for the second page, where the first had no room for all, and how many are left out there."""
    texts = told(found)
    if is_whole(texts):
        return []
    left_out = len(texts) - MAX_LONG
    more = [f"{left_out} more are not shown."] if left_out > 0 else []
    return [whole_sentences(text, LONG) for text in texts[:MAX_LONG]] + more


def is_whole(texts: list[str]) -> bool:
    """Whether the first page holds all of them as they are."""
    return len(texts) <= MAX_SHORT and sum(map(len, texts)) <= ROOM


def whole_sentences(text: str, limit: int) -> str:
    """As many whole sentences as a place holds; of a longer first one as many whole words, and "…".

    Args:
        text: One caution.
        limit: Characters.
    """
    first, *rest = _END.split(text)
    if len(first) > limit:
        words = cut(first, limit)
        return words if " " not in words else f"{words.rsplit(' ', 1)[0].rstrip(',;:')}…"
    for sentence in rest:
        if len(first) + 1 + len(sentence) > limit:
            break
        first = f"{first} {sentence}"
    return first


def told(found: Reported) -> list[str]:
    """What changes the advice first, what the job has noted last."""
    run, advice = found.run, found.advice
    texts = [*(one.text for one in advice.warnings), *(one.text for one in run.notices), *run.notes]
    return list(dict.fromkeys(texts))
