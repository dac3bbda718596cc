"""Answers that are kept by what they rest on: pages ask for the same sweep again and again."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class KeptAnswers(Generic[Answer]):
    """The answers asked for last. Keys hold a version of their data, so nothing in here is ever out of date.

    Args:
        most: How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()

    def find(self, key: Hashable) -> Answer | None:
        """The answer of this key, or None."""
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def keep(self, key: Hashable, answer: Answer) -> Answer:
        """The answer, which is kept; the one that was not asked for the longest goes."""
        self._answers[key] = answer
        self._answers.move_to_end(key)
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)
        return answer
