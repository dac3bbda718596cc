"""The key figures of the overview."""

from collections.abc import Sequence

from dash import html

from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.overview.judged import Judged, Savings, Totals, hours_to_gain, usd_to_save
from noisescale_dashboard.shell.parts import fact
from noisescale_dashboard.words.decisions import LIKELY
from noisescale_dashboard.words.number_format import NOTHING, count, duration, money, span

SECONDS = 3600.0
LABELS = {"running": "Running", "7d": "Runs, 7 days", "30d": "Runs, 30 days"}


def facts(judged: Sequence[Judged], total: int, *, scope: str, totals: Totals | None = None) -> list[html.Div]:
    """How many run, how many are worth a change, what that saves, how many are resolved."""
    raised = sum(one.decision == "increase" for one in judged) if totals is None else totals.raised
    lowered = sum(one.decision == "decrease" for one in judged) if totals is None else totals.lowered
    likely = sum(one.decision in LIKELY for one in judged) if totals is None else totals.likely
    silent = sum(one.run.status == "silent" for one in judged) if totals is None else totals.silent
    resolved = sum(one.run.noise_scale.state == "resolved" for one in judged)
    gain, save = hours_to_gain(judged), usd_to_save(judged)
    # what is judged is a sample of the runs, the furthest off: a count of it is not one of them all
    judged_words = f"of {count(len(judged))}" if total == len(judged) else f"of the {count(len(judged))} furthest off"
    return [
        # a silent run is counted apart: whether it still runs nobody knows
        fact(LABELS.get(scope, "Runs"), count(total - silent), "", _devices(judged, total, silent)),
        fact(
            "Worth changing",
            count(raised + lowered),
            judged_words if totals is None else f"of {count(total)}",
            _changes(raised, lowered, likely),
        ),
        fact(
            "Time to gain",
            duration(SECONDS * gain.total.value) if gain.num_counted and gain.total.value is not None else NOTHING,
            "",
            f"95 %: {_between(gain.total)}, {_counted(gain)}" if gain.num_counted else _why(gain, "raise"),
            tone="" if gain.num_counted else "dim",
        ),
        fact(
            "Compute to save",
            money(save.total.value) if save.num_counted else NOTHING,
            "",
            f"95 %: ${span(save.total.low, save.total.high)}, {_counted(save)}"
            if save.num_counted
            else _why(save, "lower"),
            tone="" if save.num_counted else "dim",
        ),
        fact("Resolved", f"{resolved}", judged_words, _open_words(len(judged) - resolved)),
    ]


def _between(hours: Interval) -> str:
    """From the shortest to the longest duration, once where both are called alike."""
    ends = [duration(SECONDS * end) for end in (hours.low, hours.high) if end is not None]
    return " – ".join(dict.fromkeys(ends))


def _changes(raised: int, lowered: int, likely: int) -> str:
    return f"{raised} raise, {lowered} lower" + (f"; {likely} probably" if likely else "")


def _devices(judged: Sequence[Judged], total: int, silent: int) -> str:
    devices = sum(one.run.num_devices or 0 for one in judged if one.run.status == "running")
    said = [f"on {count(devices)} device{'' if devices == 1 else 's'}"] if devices and total == len(judged) else []
    said += [f"{count(silent)} silent, not counted"] if silent else []
    return " · ".join(said) or "noise scale and batch known"


def _counted(savings: Savings) -> str:
    return f"of {savings.num_counted} run{'' if savings.num_counted == 1 else 's'}"


def _why(savings: Savings, verb: str) -> str:
    """Why there is no sum: nothing to change, or nothing that is tied to a critical batch."""
    if not savings.num_aside:
        return f"none to {verb}"
    return f"{savings.num_aside} to {verb}, not calibrated or priced"


def _open_words(num_open: int) -> str:
    return f"{num_open} need{'s' if num_open == 1 else ''} more steps" if num_open else "all of them"
