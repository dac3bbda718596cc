"""The tool that explains a number: its formula with the run's own numbers in it, its rows, its page of the docs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcp.types import CallToolResult

from noisescale.agents.calls import Asked, Caller, answer, in_words, quantity
from noisescale.agents.reading_runs import RunName, unit_of
from noisescale.agents.schemas import Quantity
from noisescale.agents.schemas_advice import Explanation, Rows
from noisescale.stored.api import ROOT, Api, path_of, with_values
from noisescale.stored.finding import StoredRun, find_run
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.words.of_a_run import batch

NumberName = Literal[
    "noise_scale", "example_efficiency", "step_efficiency", "critical_batch", "recommended_batch_size", "probability",
    "saving", "worst_case", "learning_rate", "waste",
]  # fmt: skip

MCCANDLISH = "McCandlish et al. 2018, arXiv:1812.06162"

POINTS = 1000
"""As many as the server gives: the last one is then of the latest window alone."""

OF_WINDOW = ("noise_scale", "example_efficiency", "step_efficiency")
"""Numbers of the latest window; the others are of all steps so far."""

SHARE = "share"
UNKNOWN = "not known for this run"


# The formula behind each number of a run, where it was published, and the page of the docs that derives it.


@dataclass(frozen=True, slots=True)
class Formula:
    """How a number is made.

    Attributes:
        text: The formula, with its symbols.
        source: Paper and section, or that it is ours.
        page: Of the documentation.
    """

    text: str
    source: str
    page: str


FORMULAS: Mapping[NumberName, Formula] = {
    "noise_scale": Formula(
        "φ = tr Σ ÷ |G|²: sums over the window, divided last; the interval is Fieller's, of a ratio. tr Σ is the "
        "trace of the covariance of one example's gradient, |G|² the squared norm of the true gradient, both from "
        "squared norms at two batch sizes",
        f"{MCCANDLISH}, section 2.2 and appendix A.1",
        "docs/estimators.md",
    ),
    "example_efficiency": Formula(
        "e(B) = φ ÷ (B + φ): progress per example, of the best possible",
        f"{MCCANDLISH}, eq. 2.7, divided by its two limits",
        "docs/theory.md",
    ),
    "step_efficiency": Formula(
        "w(B) = B ÷ (B + φ): progress per step, of the best possible",
        f"{MCCANDLISH}, eq. 2.7, divided by its two limits",
        "docs/theory.md",
    ),
    "critical_batch": Formula(
        "B_crit = κ φ over all looks of the run, a belief over φ with the spread of κ, which sweeps and branches of "
        "the task narrow",
        f"{MCCANDLISH}, section 2.3; κ and its spread are measured here",
        "docs/calibration.md",
    ),
    "recommended_batch_size": Formula(
        "the batch of least expected logarithm of cost S_min (1 + b/B) (r + B), b over the belief of B_crit and r what "
        "a step is worth in examples; inside the limits, rounded to a batch that can be run",
        f"cost: {MCCANDLISH}, section 2.3; the decision is ours",
        "docs/deciding.md",
    ),
    "probability": Formula(
        "the share of the belief of B_crit at which the recommended batch costs less than the present one, cost being "
        "S_min (1 + b/B) (r + B)",
        "ours, tested on held-out tasks",
        "docs/deciding.md",
    ),
    "saving": Formula(
        "1 − exp of the mean, over the belief of B_crit, of ln(cost(recommended) ÷ cost(present)), at the price r of a "
        "step",
        "ours, tested on held-out tasks",
        "docs/deciding.md",
    ),
    "worst_case": Formula(
        "the extra cost of the recommended batch over the present one in the worst twentieth of the belief of B_crit",
        "ours, tested on held-out tasks",
        "docs/deciding.md",
    ),
    "learning_rate": Formula(
        "the present rate times what the optimizer's rule says of B and B' at the noise scale",
        f"{MCCANDLISH}, eq. 2.6, and the rules of docs/theory.md for other optimizers",
        "docs/theory.md",
    ),
    "waste": Formula(
        "Σ n B w(B) over the moments of the run: examples spent beyond those that tiny batches would have needed for "
        "the same progress; n steps at batch B, w = B ÷ (B + φ) with the noise scale of the moment",
        f"{MCCANDLISH}, eq. 2.7 and D.1",
        "docs/theory.md",
    ),
}


@dataclass(frozen=True, slots=True)
class Known:
    """What the server says of a run.

    Attributes:
        run: The run.
        series: Its noise scale over windows as long as the latest.
        advice: Its recommendation.
    """

    run: StoredRun
    series: Mapping[str, Any]
    advice: Mapping[str, Any]

    @property
    def unit(self) -> str:
        """What batches are counted in."""
        return unit_of(self.run)

    def last(self, column: str) -> float | None:
        """The last point's value of a column; None without a point."""
        values = self.series["points"][column]
        return values[-1] if values else None


class Explaining:
    """The tool.

    Args:
        caller: On whose behalf it asks.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.tools = (self.explain_number,)

    @in_words
    def explain_number(
        self, asked: Asked, run: RunName, what: NumberName = "noise_scale"
    ) -> Annotated[CallToolResult, Explanation]:
        """Explain where a number of a run comes from: formula, its own numbers in it, rows, paper, page of the docs."""
        with self._caller.api(asked) as api:
            known = _known(api, find_run(api, run))
        value, worked = _value(known, what), _worked(known, what)
        formula = FORMULAS[what]
        part = Explanation(
            number=what,
            value=value,
            formula=formula.text,
            worked=worked,
            rows=_rows(known, what),
            assumes=_assumes(known, what),
            source=formula.source,
            documentation=formula.page,
        )
        steps = f"From steps {part.rows.first_step} to {part.rows.last_step}"
        said = (f"{known.run['name']}: {worked}", formula.text, steps, f"{formula.source}; {formula.page}")
        return answer(" ".join(f"{one.removesuffix('.')}." for one in said), part)


def _known(api: Api, run: StoredRun) -> Known:
    window = max(1, (run.get("noise_scale") or {}).get("num_updates") or 1) * (run.get("measure_every") or 1)
    series = api.get(path_of("runs", run["id"], "noise-scale"), points=POINTS, window=window)
    return Known(run, series, api.get(path_of("runs", run["id"], "recommendation")))


def _value(known: Known, what: NumberName) -> Quantity:
    """The number with its interval, and without a value where the server has none."""
    run, advice, unit = known.run, known.advice, known.unit
    odds = advice.get("odds") or {}
    simple: dict[str, tuple[Mapping[str, Any] | None, str]] = {
        "noise_scale": (known.series["latest"], unit),
        "example_efficiency": (run.get("example_efficiency"), SHARE),
        "step_efficiency": (run.get("step_efficiency"), SHARE),
        "critical_batch": (advice.get("critical_batch"), unit),
        "recommended_batch_size": ({"value": advice.get("recommended_batch_size")}, unit),
        "probability": ({"value": odds.get("probability")}, "probability"),
        "saving": ({"value": odds.get("saving")}, SHARE),
        "worst_case": ({"value": odds.get("worst_case")}, SHARE),
        "waste": ((advice.get("waste") or {}).get("examples"), unit),
    }
    if what == "learning_rate":
        rate = advice.get("learning_rate") or {}
        given = {"value": rate.get("recommended"), "low": rate.get("low"), "high": rate.get("high")}
        return quantity(given, "learning rate") or Quantity(unit="learning rate")
    found, of = simple[what]
    return quantity(found, of) or Quantity(unit=of)


def _worked(known: Known, what: NumberName) -> str:
    """The formula with the run's numbers in it."""
    if what == "noise_scale":
        return _worked_noise_scale(known)
    value = _value(known, what).value
    if value is None:
        return f"{what} is {UNKNOWN}: {known.advice['reason']}"
    if what in ("example_efficiency", "step_efficiency"):
        present, scale = known.run["global_batch"], known.series["latest"]["value"]
        above = number(scale) if what == "example_efficiency" else batch(present)
        return f"{above} ÷ ({batch(present)} + {number(scale)}) = {number(value)}"
    return _worked_advice(known, what, value)


def _worked_advice(known: Known, what: NumberName, value: float) -> str:
    advice, unit = known.advice, known.unit
    if what == "critical_batch":
        kappa = advice["calibration"]
        return f"{number(value)} {unit}, κ about {number(kappa['kappa']['value'])}: {kappa['text']}"
    if what == "learning_rate":
        rate = advice["learning_rate"]
        to_batch = batch(advice["recommended_batch_size"])
        return f"{rate['current']:.4g} becomes {rate['recommended']:.3g} at batch {to_batch}: {rate['text']}"
    if what == "waste":
        return f"{number(value)} {unit}: {advice['waste']['text']}"
    price = advice["exchange_rate"]
    said = f"{batch(value)} {unit}" if what == "recommended_batch_size" else number(value)
    return f"{said} at {number(price['examples_per_step'])} {unit} a step ({price['text']}). {advice['reason']}"


def _worked_noise_scale(known: Known) -> str:
    trace, square, latest = known.last("trace_cov"), known.last("grad_sq_norm"), known.series["latest"]
    if latest["value"] is None or trace is None or square is None:
        return f"noise_scale is {UNKNOWN}: {latest.get('reason_text') or 'no window of it is measured'}"
    return f"tr Σ {trace:.6g} ÷ |G|² {square:.6g} = {number(trace / square)} {known.unit}"


def _rows(known: Known, what: NumberName) -> Rows:
    """Those of the latest window for what is of it; all steps that the advice stands on for what is of that."""
    run, latest, window = known.run, known.series["latest"], known.series["window_steps"]
    is_of_window = what in OF_WINDOW
    last = latest.get("step") if is_of_window else known.advice.get("step")
    first = run.get("first_step")
    if is_of_window and last is not None:
        first = max(first or 0, last - window + 1)
    query = {"from": first, "to": last, "window": window if is_of_window else None}
    return Rows(
        run_id=run["id"],
        first_step=first,
        last_step=last,
        num_updates=latest.get("num_updates") if is_of_window else None,
        estimator=run.get("estimator"),
        num_ranks=run.get("num_ranks"),
        measured_every=run.get("measure_every"),
        address=with_values(f"{ROOT}{path_of('runs', run['id'], 'noise-scale')}", query),
    )


def _assumes(known: Known, what: NumberName) -> list[str]:
    of_run = [one["text"] for one in known.run.get("notices") or ()]
    if what in OF_WINDOW:
        return of_run
    odds = known.advice.get("odds") or {}
    cautions = [one["text"] for one in known.advice.get("warnings") or ()]
    return [one for one in (odds.get("assumes"), *cautions, *of_run) if one]
