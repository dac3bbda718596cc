"""What the REST API would say of reproductions: one of each kind and an older claim, made up."""

from typing import Any

from fakes_runs import HOSTILE
from reproduction_bodies import advice_body, claim_body, claim_summary


def stored(number: int, body: dict[str, Any]) -> dict[str, Any]:
    kind = "claim" if "claim" in body else "advice"
    head = {"id": f"00000000-0000-4000-8000-00000000e{number:03}", "kind": kind}
    moment = f"2026-11-{22 - number:02}T10:00:00Z"
    return {"claim": None, "advice": None, **body, **head, "created_at": moment, "of_the_future": 1}


def hostile_claim() -> Any:
    found = claim_summary()
    for row in (found["targets"][-1], found["growth"][-1], found["hooks"][-1]):
        row["task"] = HOSTILE
    found["exclusions"].append(HOSTILE)
    return found


REPRODUCTIONS = (
    stored(0, claim_body(claim=hostile_claim())),
    stored(1, advice_body()),
    stored(2, claim_body(claim=claim_summary("3"), effort="full", seed=7)),
)
