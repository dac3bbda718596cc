"""What a job says last, in one line: the noise scale, what to do about it, and where the run is to be seen."""

from typing import TYPE_CHECKING

from noisescale.window.recent_updates import NoiseScale
from noisescale_core.advice.parts.numbers import chance, more

if TYPE_CHECKING:
    from noisescale.ask.recommendation import Recommendation


def result_line(task: str, noise_scale: NoiseScale, advice: "Recommendation", where: str) -> str:
    """The line.

    Args:
        task: What was trained.
        noise_scale: At the end.
        advice: What it says about the batch.
        where: The run is to be seen; empty where nobody knows, or that was said already.
    """
    parts = (f"noise scale of {task}: {noise_scale.said(has_ended=True)}", _to_do(advice), where)
    return ". ".join(part.removesuffix(".") for part in parts if part)


def _to_do(advice: "Recommendation") -> str:
    """A decision with its odds; what is next where nothing is decided."""
    odds = advice.odds
    if odds is None or advice.decision == "insufficient_evidence":
        return f"{advice.headline}: {advice.next_step}" if advice.next_step else advice.headline
    if advice.decision in ("keep", "keep_for_now"):
        return f"{advice.headline} (expected to cost {more(odds.present_regret)} than the best batch)"
    return f"{advice.headline} (cheaper with a probability of {chance(odds.probability)})"
