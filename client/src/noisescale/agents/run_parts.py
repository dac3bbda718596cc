"""A stored run as tools tell it."""

from typing import Any

from noisescale.agents.answering import estimate, quantity, rounded
from noisescale.agents.schemas import Decision, RunDetails, RunLine
from noisescale.config import without_password
from noisescale.notices.readable import several
from noisescale.stored import words
from noisescale.stored.finding import StoredRun

MAX_SETTINGS = 60
SHARE = "share"


def unit_of(run: StoredRun) -> str:
    """What the run's batches and noise scales are counted in: images, sequences.

    Args:
        run: As the server gives it.
    """
    return several(run["example"])


def page_of(url: str, run_id: str) -> str:
    """The address of a run's page.

    Args:
        url: Of the server.
        run_id: Of the run.
    """
    return f"{without_password(url)}/runs/{run_id}"


def run_line(run: StoredRun, url: str) -> RunLine:
    """A run in a list.

    Args:
        run: As the server gives it.
        url: Of the server.
    """
    return RunLine(**_line(run, url))


def run_details(run: StoredRun, url: str) -> RunDetails:
    """One run.

    Args:
        run: As the server gives it.
        url: Of the server.
    """
    return RunDetails(
        **_line(run, url),
        optimizer=run.get("optimizer"),
        num_devices=run.get("num_devices"),
        device=run.get("device"),
        usd_per_device_hour=run.get("usd_per_device_hour"),
        example_efficiency=quantity(run.get("example_efficiency"), SHARE),
        step_efficiency=quantity(run.get("step_efficiency"), SHARE),
        last_data_at=run.get("updated_at"),
        tags=list(run.get("tags") or ()),
        remarks=run.get("remarks") or None,
        notices=[one["text"] for one in run.get("notices") or ()],
        config=dict(list((run.get("config") or {}).items())[:MAX_SETTINGS]),
    )


def run_text(run: StoredRun) -> str:
    """A run in a line: digits-b64 (vision/digits), finished at step 400 of 2,000: noise scale …; raise to 3,072.

    Args:
        run: As the server gives it.
    """
    batch = "" if run.get("global_batch") is None else f", batch {words.batch_of(run)}"
    return (
        f"{run['name']} ({run['project']}/{run['task']}), {words.state(run)}, {words.steps(run)} steps{batch}, "
        f"noise scale {words.noise_scale_of(run)}; {words.decision(run)}"
    )


def _line(run: StoredRun, url: str) -> dict[str, Any]:
    unit, decision = unit_of(run), run.get("decision") or {}
    divergence = run.get("divergence")
    last_step = run.get("last_step")
    return {
        "id": run["id"],
        "name": run["name"],
        "project": run["project"],
        "task": run["task"],
        "status": run["status"],
        "unit": unit,
        "steps_done": 0 if last_step is None else last_step + 1,
        "planned_steps": run.get("planned_steps"),
        "loss": rounded(run.get("loss")),
        "learning_rate": run.get("lr"),
        "batch_size": run.get("global_batch"),
        "noise_scale": estimate(run.get("noise_scale") or {}, unit),
        "decision": Decision(
            decision=decision.get("decision") or "insufficient_evidence",
            batch_size=decision.get("batch_size"),
            probability=rounded(decision.get("probability")),
            saving=rounded(decision.get("saving")),
            reason=decision.get("reason"),
        ),
        "diverged_at_step": divergence["step"] if divergence else None,
        "page": page_of(url, run["id"]),
    }
