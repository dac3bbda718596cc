"""Names side by side, short enough for a label and still told apart."""

import re
from collections.abc import Sequence

BETWEEN_WORDS = re.compile(r"([-_/ :]+)")
SEPARATORS = "-_./ :"
LEAST_SHARED = 6
"""Characters that names must share at their beginning before these are left out."""


def told_apart(names: Sequence[str], *, at_most: int = 24) -> list[str]:
    """The words in which the names differ, of names alike in form; else without what they all begin with.

    What is shared is left out up to a separator, so that no word is torn, and what is long is cut in the middle. Names
    that would be alike then stay whole.

    Args:
        names: Of runs side by side.
        at_most: Characters of a label.
    """
    if all(len(name) <= at_most for name in names):
        return list(names)
    words = _differing_words(names)
    if words is not None and all(len(word) <= at_most for word in words):
        return words
    shared = _shared(names) if len(set(names)) > 1 else 0
    short = [cut_in_the_middle(f"…{name[shared:]}" if shared else name, at_most) for name in names]
    return short if len(set(short)) == len(set(names)) else list(names)


def _differing_words(names: Sequence[str]) -> list[str] | None:
    """The words that are not the same in all names, "…" for those between; None for names of several forms."""
    split = [BETWEEN_WORDS.split(name) for name in names]
    if len({_form(name) for name in names}) > 1 or len(set(names)) < len(names) or len(names) < 2:
        return None
    varies = [len({parts[at] for parts in split}) > 1 for at in range(len(split[0]))]
    return [_kept(parts, varies) for parts in split]


def _kept(parts: Sequence[str], varies: Sequence[bool]) -> str:
    """Words that vary with what separates neighbours among them, an ellipsis for each stretch that is left out."""
    said = ""
    for at in range(0, len(parts), 2):
        if varies[at]:
            is_next = at >= 2 and varies[at - 2]
            said += f"{parts[at - 1]}{parts[at]}" if is_next else parts[at]
        elif not said.endswith("…"):
            said += "…"
    return said


def short_names(names: Sequence[str], *, at_most: int) -> list[str]:
    """Names for a list, each cut in the middle; those that would then be alike show where they differ instead.

    Args:
        names: Of one list, of any families.
        at_most: Characters of a name that are left, ellipses among them.
    """
    cut = {name: cut_in_the_middle(name, at_most) for name in names}
    families: dict[tuple[str, ...], list[str]] = {}
    for name in cut:
        families.setdefault(_form(name), []).append(name)
    for family in families.values():
        if len({cut[name] for name in family}) == len(family):
            continue
        words = _words_behind_the_beginning(family, at_most)
        if words is not None:
            cut |= dict(zip(family, words, strict=True))
            continue
        alike: dict[str, list[str]] = {}
        for name in family:
            alike.setdefault(cut[name], []).append(name)
        for group in alike.values():
            if len(group) > 1:
                cut |= dict(zip(group, _where_they_differ(group, at_most), strict=True))
    return [cut[name] for name in names]


def _form(name: str) -> tuple[str, ...]:
    """What separates the words of a name: runs of one script have the same."""
    return tuple(BETWEEN_WORDS.split(name)[1::2])


def _words_behind_the_beginning(names: Sequence[str], at_most: int) -> list[str] | None:
    """The words in which names of one form differ, behind as much of their beginning as fits; None where none do."""
    words = _differing_words(names)
    if words is None or any(len(word) > at_most for word in words):
        return None
    room = at_most - max(map(len, words))
    return [f"{name[:room]}{word}" if word.startswith("…") else word for name, word in zip(names, words, strict=True)]


def _where_they_differ(names: Sequence[str], at_most: int) -> list[str]:
    """What is left of names between what they all begin and what they all end with, behind a hint of the beginning."""
    first = _shared(names)
    rest = [name[first:] for name in names]
    last = _shared([name[::-1] for name in rest])
    middle = [name[: len(name) - last] for name in rest]
    end = "…" if last else ""
    room = max(at_most - max(map(len, middle)) - len(end) - 1, 0)
    head = names[0][: min(room, first)]
    short = [cut_in_the_middle(f"{head}…{part}{end}" if first else f"{part}{end}", at_most) for part in middle]
    return short if len(set(short)) == len(names) else list(names)


def _shared(names: Sequence[str]) -> int:
    first, last = min(names), max(names)
    length = next(
        (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other),
        min(len(first), len(last)),
    )
    prefix = first[:length]
    end = max(prefix.rfind(separator) for separator in SEPARATORS) + 1
    return end if end >= LEAST_SHARED else 0


def cut_in_the_middle(name: str, at_most: int) -> str:
    """Beginning and end of a name: runs differ at their ends.

    Args:
        name: Of any length.
        at_most: Characters that are left, the ellipsis among them.
    """
    if len(name) <= at_most:
        return name
    kept = at_most - 1
    head = kept // 2
    return f"{name[:head]}…{name[len(name) - (kept - head) :]}"
