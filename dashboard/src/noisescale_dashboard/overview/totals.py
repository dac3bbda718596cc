"""How many runs of the scope there are, and how many are off: of all of them, not of those that are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.question_fields import BALANCED
from noisescale_dashboard.words.decisions import KEPT, LIKELY

OF_A_PAGE = ("sort", "limit")
"""What a query says of the list and not of which runs."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Runs by state and by decision.

    Attributes:
        runs: Of the scope.
        silent: Of them, those that have sent nothing for a while; 0 where the scope is not what runs.
        raised: Too small.
        lowered: Too large.
        likely: Probably off.
        kept: Fine.
        is_exact: Whether these are all; else they are the newest ones.
    """

    runs: int
    silent: int
    raised: int
    lowered: int
    likely: int
    kept: int
    is_exact: bool = True

    @property
    def off(self) -> int:
        """Worth a change."""
        return self.raised + self.lowered

    @property
    def unsure(self) -> int:
        """Those of which it is too early to say anything."""
        return max(self.runs - self.off - self.likely - self.kept, 0)


async def totals(
    api: ApiClient, visitor: Mapping[str, str], asked: Mapping[str, Any], *, runs: int, preference: float
) -> Totals | None:
    """Counts by the server's own decisions, in one request; None where the reader's preference is not theirs.

    Args:
        api: Asked for the runs by decision.
        visitor: On whose behalf.
        asked: The query of the scope.
        runs: How many match it.
        preference: Of the reader.

    Raises:
        ApiProblem: When the API does not answer.
    """
    if preference != BALANCED:
        return None
    which = {name: value for name, value in asked.items() if name not in OF_A_PAGE}
    found = await api.run_groups(visitor, {**which, "by": "decision"})
    groups = {group.value: group for group in found.groups}

    def count(*decisions: str) -> int:
        return sum(groups[one].num_runs for one in decisions if one in groups)

    silent = sum(group.num_silent for group in groups.values()) if asked.get("status") else 0
    runs = max(runs, sum(group.num_runs for group in groups.values()))
    kept, likely = count(*KEPT), count(*LIKELY)
    return Totals(runs, silent, count("increase"), count("decrease"), likely, kept, found.is_exact)
