"""Further columns of the table of runs, by choice: what the run says of itself, and any key of its config."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from noisescale_dashboard.answers.common import Kappa, Run
from noisescale_dashboard.words.number_format import count, duration, money, rate, share, si, significant, span

CONFIG: Final = "config."
MAX_CHOSEN = 12
MAX_KEYS = 200
WORD_LIMIT = 80

OWN: Final[Mapping[str, tuple[str, Callable[[Run], str | None]]]] = MappingProxyType(
    {
        "task": ("Task", lambda run: run.task),
        "project": ("Project", lambda run: run.project),
        "tags": ("Tags", lambda run: ", ".join(run.tags) or None),
        "remarks": ("Remarks", lambda run: " ".join(run.remarks.split()) or None),
        "family": ("Family", lambda run: run.family),
        "planned_steps": (
            "Planned steps",
            lambda run: None if run.planned_steps is None else count(run.planned_steps),
        ),
        "optimizer": ("Optimizer", lambda run: run.optimizer),
        "lr": ("Learning rate", lambda run: None if run.lr is None else rate(run.lr)),
        "step_efficiency": (
            "Step efficiency",
            lambda run: None if run.step_efficiency.value is None else share(run.step_efficiency.value),
        ),
        "kappa": ("κ, 95 %", lambda run: kappa_words(run.kappa)),
        "examples": ("Examples", lambda run: None if run.examples is None else si(run.examples)),
        "devices": ("Devices", lambda run: None if run.num_devices is None else count(run.num_devices)),
        "device": ("Device", lambda run: run.device),
        "estimator": ("Measured from", lambda run: run.estimator),
        "hours": ("Hours", lambda run: None if (taken := hours(run)) is None else duration(3600 * taken)),
        "cost": ("Cost, USD", lambda run: None if (paid := cost(run)) is None else money(paid)),
        "created": ("Created", lambda run: run.created_at[:10]),
    }
)
"""Name in the address → (header, what a run shows there)."""


def kappa_words(kappa: Kappa) -> str:
    """κ with its interval; no number of its own before a sweep or branch has measured it here."""
    if not kappa.measurements:
        return "not calibrated"
    return f"{significant(kappa.value, 2)}, {span(kappa.low, kappa.high, dense=True)}"


def hours(run: Run) -> float | None:
    """From the creation of the run to its newest data, pauses included; None before there are any."""
    if run.last_step is None:
        return None
    created, newest = (datetime.fromisoformat(moment) for moment in (run.created_at, run.updated_at))
    return max(0.0, (newest - created).total_seconds() / 3600)


def cost(run: Run) -> float | None:
    """USD at the run's price for so long, at most what it took; None without a price or devices."""
    taken = hours(run)
    if taken is None or run.usd_per_device_hour is None or run.num_devices is None:
        return None
    return taken * run.num_devices * run.usd_per_device_hour


def words_in(word: str) -> list[str]:
    """The parts of a word of the address that holds several; a comma inside a part is written as %2C."""
    return [part.replace("%2C", ",").replace("%2c", ",").replace("%25", "%") for part in word.split(",") if part]


def chosen(word: str) -> list[str]:
    """The columns in a word of the address, those that exist or name a key of a config, each once."""
    names = words_in(word)
    known = dict.fromkeys(name for name in names if name in OWN or (name.startswith(CONFIG) and name != CONFIG))
    return list(known)[:MAX_CHOSEN]


def choices(runs: Iterable[Run], also: Iterable[str] = ()) -> list[dict[str, str]]:
    """What can be chosen: the run's own columns, then the keys of these runs' configs."""
    keys = sorted({f"{CONFIG}{key}" for run in runs for key in run.config or {}})[:MAX_KEYS]
    names = dict.fromkeys([*OWN, *also, *keys])
    return [{"value": name, "label": label(name)[:WORD_LIMIT]} for name in names]


TOOLTIPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kappa": "critical batch ÷ noise scale, measured by your own sweeps and branches, and followed runs",
        "hours": "from the creation of the run to its newest data, pauses included",
        "cost": "hours × devices × price of a device; at most, as pauses are included",
    }
)


def label(name: str) -> str:
    """The header of a column."""
    return OWN[name][0] if name in OWN else name.removeprefix(CONFIG)


def words(run: Run, name: str) -> str | None:
    """What a run shows in a column; None where it has nothing to say."""
    if name in OWN:
        found = OWN[name][1](run)
        return None if found is None else found[:WORD_LIMIT]
    return config_words((run.config or {}).get(name.removeprefix(CONFIG)))


def config_words(value: Any) -> str | None:
    """A value of a config as text: as it is written in JSON, strings without quotes."""
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:WORD_LIMIT]
