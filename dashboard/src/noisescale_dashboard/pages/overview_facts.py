"""The key figures of the overview."""

from collections.abc import Sequence

from dash import html

from noisescale_dashboard.decisions import LIKELY
from noisescale_dashboard.number_format import NOTHING, count, money, significant, span
from noisescale_dashboard.pages.overview_judged import Judged, Savings, hours_to_gain, is_all_running, usd_to_save
from noisescale_dashboard.pages.parts import fact

LABELS = {"running": "Running", "7d": "Runs, 7 days", "30d": "Runs, 30 days"}


def facts(judged: Sequence[Judged], total: int, *, scope: str) -> list[html.Div]:
    """How many run, how many are worth a change, what that saves, how many are resolved."""
    raised = sum(one.decision == "increase" for one in judged)
    lowered = sum(one.decision == "decrease" for one in judged)
    resolved = sum(one.run.noise_scale.state == "resolved" for one in judged)
    gain, save = hours_to_gain(judged), usd_to_save(judged)
    label = "Running or silent" if scope == "running" and not is_all_running(judged, total) else LABELS.get(scope)
    # what is judged is a sample of the runs, the furthest off: a count of it is not one of them all
    judged_words = f"of {count(len(judged))}" if total == len(judged) else f"of the {count(len(judged))} furthest off"
    return [
        fact(label or "Runs", count(total), "", _devices(judged, total)),
        fact("Worth changing", count(raised + lowered), judged_words, _changes(judged, raised, lowered)),
        fact(
            "Time to gain",
            significant(gain.total.value, 2) if gain.num_counted else NOTHING,
            "h" if gain.num_counted else "",
            f"95 %: {span(gain.total.low, gain.total.high)} h, {_counted(gain)}"
            if gain.num_counted
            else _why(gain, "raise"),
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


def _changes(judged: Sequence[Judged], raised: int, lowered: int) -> str:
    likely = sum(one.decision in LIKELY for one in judged)
    return f"{raised} raise, {lowered} lower" + (f"; {likely} probably" if likely else "")


def _devices(judged: Sequence[Judged], total: int) -> str:
    silent = sum(one.run.status == "silent" for one in judged)
    devices = sum(one.run.num_devices or 0 for one in judged if one.run.status == "running")
    said = [f"on {count(devices)} device{'' if devices == 1 else 's'}"] if devices and total == len(judged) else []
    said += [f"{silent} silent"] if silent else []
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
