"""A recommendation and a planner's table as tools tell them."""

from collections.abc import Mapping
from typing import Any

from noisescale.agents.calls import estimate, quantity, rounded
from noisescale.agents.schemas import Quantity
from noisescale.agents.schemas_advice import (
    AtPreference,
    LearningRate,
    Limit,
    Odds,
    Plan,
    Recommendation,
    Row,
    Waste,
    WhatIf,
)
from noisescale.notices.readable import several
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.words.of_a_run import batch

MAX_STAGES = 8
MAX_ROWS = 8
SHARE = "share"


def recommendation(found: Mapping[str, Any], source: str, page: str | None) -> Recommendation:
    """The answer of `GET …/recommendation`, compact.

    Args:
        found: By the names of `docs/rest.md`.
        source: Who answers.
        page: Address of the run's page.
    """
    unit = several(found.get("example") or "example")
    rate, limited, price = found.get("learning_rate"), found.get("limited"), found.get("exchange_rate")
    return Recommendation(
        decision=found["decision"],
        headline=found["headline"],
        reason=found["reason"],
        unit=unit,
        source=source,
        effect=found.get("effect"),
        current_batch_size=found.get("current_batch_size"),
        recommended_batch_size=found.get("recommended_batch_size"),
        in_units=_in_units(found),
        odds=_odds(found.get("odds")),
        best_batch=quantity(found.get("interval"), unit),
        critical_batch=quantity(found.get("critical_batch"), unit),
        noise_scale=estimate(found["noise_scale"], unit) if found.get("noise_scale") else None,
        price=f"{number(price['examples_per_step'])} {unit} a step: {price['text']}" if price else None,
        otherwise=[AtPreference(**_named(one, AtPreference)) for one in found.get("otherwise") or ()],
        learning_rate=LearningRate(
            **{k: rounded(v) if k != "rule" else v for k, v in _named(rate, LearningRate).items()}
        )
        if rate
        else None,
        limits=limited["text"] if limited and (limited.get("binding") or limited.get("batch_size") is None) else None,
        schedule=_schedule(found.get("schedule")),
        waste=_waste(found.get("waste"), unit),
        warnings=[_caution(one) for one in found.get("warnings") or ()],
        next_step=found.get("next_step"),
        note=found.get("note"),
        page=page,
    )


def recommendation_text(found: Recommendation) -> str:
    """The recommendation in a few lines.

    Args:
        found: As a tool tells it.
    """
    best = found.best_batch
    interval = ""
    if best is not None and best.value is not None and best.low is not None and best.high is not None:
        interval = f"Best batch {number(best.value)} {found.unit} [{number(best.low)}, {number(best.high)}]."
    effect = found.effect if found.odds is None else None
    cautions = (f"Careful: {one}" for one in found.warnings)
    surer = found.next_step and f"To be surer: {found.next_step}"
    lines = (f"{found.headline}. {found.reason}", interval, effect, found.limits, *cautions, surer)
    return "\n".join(line for line in lines if line)


def plan(found: Mapping[str, Any]) -> Plan:
    """The answer of `GET …/tradeoff`, compact: at most eight rows.

    Args:
        found: By the names of `docs/rest.md`.
    """
    unit = several(found["example"])
    names = {one["kind"]: one["breaks"] for one in found["limits"]}
    return Plan(
        unit=unit,
        target=found["target"],
        critical_batch=quantity(found["critical_batch"], unit) or Quantity(unit=unit),
        critical_batch_text=found["critical_batch_text"],
        price=f"{number(found['examples_per_step'])} {unit} a step: {found['price_text']}",
        recommended=row(found["recommended"], unit, names),
        present=row(found["present"], unit, names),
        limits_text=found["limit_text"],
        limits=[Limit(**_named(one, Limit)) for one in found["limits"]],
        rows=[one for given in _spread(found["rows"]) if (one := row(given, unit, names)) is not None],
        what_ifs=[
            WhatIf(name=one["name"], text=one["text"], row=row(one["row"], unit, names)) for one in found["what_ifs"]
        ],
        assumes=found.get("assumes"),
    )


def row(found: Mapping[str, Any] | None, unit: str, names: Mapping[str, str]) -> Row | None:
    """What a batch takes.

    Args:
        found: As the server gives it; None where no batch does it.
        unit: That batches are counted in.
        names: What a batch does that breaks a limit, by the limit's kind.
    """
    if found is None:
        return None
    return Row(
        batch_size=found["batch_size"],
        num_devices=found.get("num_devices"),
        steps=quantity(found.get("steps"), "steps"),
        examples=quantity(found.get("examples"), unit),
        hours=quantity(found.get("hours"), "hours"),
        usd=quantity(found.get("usd"), "USD"),
        extra_cost=rounded(found.get("regret")),
        breaks=[names.get(one, one) for one in found.get("breaks") or ()],
    )


def row_text(found: Row, unit: str) -> str:
    """A row in a line: 2,048 images: 310 steps [290, 400], 1.2 h [1.1, 1.6].

    Args:
        found: As a tool tells it.
        unit: That batches are counted in.
    """
    parts = [_said(one) for one in (found.steps, found.hours, found.usd) if one is not None]
    return f"{batch(found.batch_size)} {unit}: {', '.join(parts) or 'no plan to hold it against'}"


def _said(found: Quantity) -> str:
    if found.value is None:
        return f"unknown {found.unit}"
    ends = "" if found.low is None or found.high is None else f" [{number(found.low)}, {number(found.high)}]"
    return f"{number(found.value)} {found.unit}{ends}"


def _spread(rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """At most eight of the rows, from the first to the last."""
    if len(rows) <= MAX_ROWS:
        return rows
    return [rows[round(i * (len(rows) - 1) / (MAX_ROWS - 1))] for i in range(MAX_ROWS)]


def _named(found: Mapping[str, Any], part: type[Any]) -> dict[str, Any]:
    """What a part has a name for; a newer server may say more."""
    return {name: found[name] for name in part.model_fields if name in found}


def _caution(found: Mapping[str, Any]) -> str:
    """The sentence; one that is only an end of a line elsewhere says what it is about."""
    return f"the learning rate is {found['text']}" if found["code"] == "rate_not_known" else str(found["text"])


def _in_units(found: Mapping[str, Any]) -> Quantity | None:
    factor, size = found.get("units_per_example", 1), found.get("recommended_batch_size")
    return None if factor == 1 or size is None else Quantity(value=size * factor, unit=found["unit"])


def _odds(found: Mapping[str, Any] | None) -> Odds | None:
    if not found:
        return None
    numbers = {name: rounded(value) if name != "assumes" else value for name, value in _named(found, Odds).items()}
    return Odds(**numbers)


def _waste(found: Mapping[str, Any] | None, unit: str) -> Waste | None:
    if not found:
        return None
    return Waste(
        share=quantity(found["fraction"], SHARE) or Quantity(unit=SHARE),
        examples=quantity(found["examples"], unit) or Quantity(unit=unit),
        usd=quantity(found.get("usd"), "USD"),
        hours=quantity(found.get("hours"), "hours"),
    )


def _schedule(found: Mapping[str, Any] | None) -> list[str]:
    if not found:
        return []
    stages = [
        f"batch {batch(one['batch_size'])} from step {one['step']:,}"
        + ("" if one.get("learning_rate") is None else f", learning rate {one['learning_rate']:.3g}")
        for one in found["stages"]
    ]
    left_out = len(stages) - MAX_STAGES
    return stages[:MAX_STAGES] + ([f"{left_out} more stages"] if left_out > 0 else [])
