"""Asking for a recommendation from Python: from the server, or from the job's own measurements; loaded on first use."""

from typing import TYPE_CHECKING

from noisescale.lazy import exports

if TYPE_CHECKING:
    from noisescale.ask.advisor import Advisor
    from noisescale.ask.recommendation import Recommendation

_MODULES = {"Advisor": "noisescale.ask.advisor", "Recommendation": "noisescale.ask.recommendation"}

__getattr__, __dir__ = exports(__name__, _MODULES)

__all__ = ["Advisor", "Recommendation"]
