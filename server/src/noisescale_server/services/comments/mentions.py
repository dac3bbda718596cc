"""Whom a text mentions: an @ and the name of somebody who reads the project."""

from collections.abc import Iterable


def mentioned(text: str, names: Iterable[str]) -> list[str]:
    """The names behind an @ in the text, each once, in its order.

    Of two names of which one begins with the other the longer one counts. A name ends where no letter or digit follows,
    and an @ inside a word, as in an address, mentions nobody. Capitals do not matter.

    Args:
        text: As it was written.
        names: What people are called.
    """
    longest_first = sorted(set(names), key=lambda name: (-len(name), name))
    found: dict[str, None] = {}
    for at, letter in enumerate(text):
        if letter != "@" or (at and text[at - 1].isalnum()):
            continue
        name = next((one for one in longest_first if _begins(text, at + 1, one)), None)
        if name is not None:
            found[name] = None
    return list(found)


def _begins(text: str, at: int, name: str) -> bool:
    end = at + len(name)
    return text[at:end].casefold() == name.casefold() and not text[end : end + 1].isalnum()
