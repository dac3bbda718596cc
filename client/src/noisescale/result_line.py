"""What a job says last, in one line: the noise scale, what to do about it, and where the run is to be seen."""

from typing import TYPE_CHECKING

from noisescale.readable import readable
from noisescale.recent_updates import NoiseScale

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
    """A decision with the interval that it rests on; what is next where nothing is decided."""
    best = advice.interval
    if best is None or advice.decision not in ("increase", "decrease", "keep"):
        return f"{advice.headline}: {advice.next_step}" if advice.next_step else advice.headline
    ends = f"{readable(best.low)}, {readable(best.high)}"
    return f"{advice.headline} (best {readable(best.value)} [{ends}], {100 * best.level:.3g} %)"
