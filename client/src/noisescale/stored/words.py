"""A stored run in a few words: its noise scale with interval, its decision with odds, how far it is."""

from collections.abc import Mapping
from typing import Any

from noisescale.notices.readable import several
from noisescale.stored.finding import StoredRun
from noisescale_core.advice.parts.numbers import chance, number, percent
from noisescale_core.advice.words.of_a_run import batch

DECISIONS = {
    "increase": "raise to {batch}",
    "decrease": "lower to {batch}",
    "probably_increase": "probably raise to {batch}",
    "probably_decrease": "probably lower to {batch}",
    "keep": "keep",
    "keep_for_now": "keep for now",
    "insufficient_evidence": "undecided",
}
"""What each word of a decision means to do."""


def state(run: StoredRun) -> str:
    """What its process does, and that it has diverged.

    Args:
        run: As the server gives it.
    """
    return f"{run['status']}, diverged" if run.get("divergence") else str(run["status"])


def steps(run: StoredRun) -> str:
    """The newest step, of how many planned ones: 412 of 1,200."""
    if run.get("last_step") is None:
        return "–"
    planned = run.get("planned_steps")
    return f"{run['last_step'] + 1:,}" + (f" of {planned:,}" if planned else "")


def noise_scale(found: Mapping[str, Any] | None, *, has_reason: bool = True) -> str:
    """An estimate with its interval, in examples: 1,490 [1,130, 1,960].

    Args:
        found: As the server gives it.
        has_reason: What is not resolved says why.
    """
    if not found:
        return "–"
    if found.get("value") is None:
        bound = "" if found.get("low") is None else f"> {number(found['low'])}"
        why = found.get("reason_text") if has_reason else None
        return ", ".join(part for part in (bound, f"not resolved: {why}" if why else "not resolved") if part)
    tentative = ", tentative" if found.get("state") == "tentative" else ""
    return f"{number(found['value'])} [{number(found['low'])}, {number(found['high'])}]{tentative}"


def batch_of(run: StoredRun) -> str:
    """The batch in use, never rounded, and in the run's unit where that is another: 64 sequences = 65,536 tokens.

    Args:
        run: As the server gives it.
    """
    size, factor = run["global_batch"], run["units_per_example"]
    units = "" if factor == 1 else f" = {batch(size * factor)} {run['unit']}"
    return f"{batch(size)} {several(run['example'])}{units}"


def noise_scale_of(run: StoredRun) -> str:
    """The noise scale of a run in full: 1,490 images [1,130, 1,960], resolved, z = 6.1.

    Args:
        run: As the server gives it.
    """
    found = run.get("noise_scale") or {}
    if found.get("value") is None:
        return noise_scale(found)
    interval = f"[{number(found['low'])}, {number(found['high'])}]"
    z = "" if found.get("z") is None else f", z = {found['z']:.1f}"
    value = found["value"]
    factor = run["units_per_example"]
    units = "" if factor == 1 else f" = {number(value * factor)} {run['unit']}"
    return f"{number(value)} {several(run['example'])} {interval}{units}, {found['state']}{z}"


def decision(run: StoredRun) -> str:
    """What to do with the batch, and how sure that is: raise to 640 (93 %).

    Args:
        run: As the server gives it.
    """
    if run.get("divergence"):
        return f"diverged at step {run['divergence']['step']}"
    found = run.get("decision") or {}
    word = DECISIONS.get(found.get("decision", ""), str(found.get("decision") or "–"))
    if found.get("batch_size") is not None:
        word = word.format(batch=batch(found["batch_size"]))
    odds = found.get("probability")
    return f"{word} ({chance(odds)})" if odds is not None and "{" not in word and found.get("batch_size") else word


def share(found: Mapping[str, Any] | None) -> str:
    """A share with its interval: 61 % [52 %, 70 %]."""
    if not found:
        return "–"
    return f"{percent(found['value'])} [{percent(found['low'])}, {percent(found['high'])}]"
