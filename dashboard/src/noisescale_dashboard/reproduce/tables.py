"""The tables of what `noisescale reproduce` found; each stands in a card that says what it does not show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dash import html

from noisescale_dashboard.answers.common import Interval, Json
from noisescale_dashboard.answers.reproductions import in_units
from noisescale_dashboard.reproduce.words import AVERAGES, bracketed
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.words.number_format import NOTHING, count, exactly, ratio, share, significant, span

FIGURES = ("r_squared_of_fit", "r_squared_of_identity", "rms_factor", "within_factor_2", "within_factor_3", "slope")
ADVISED_STARTS = ("all", "right")

Row = Sequence[Child]


def table(head: Sequence[str], rows: Sequence[Row], label: str) -> html.Div:
    """A table that scrolls inside its card; the first column names the row."""
    body = [html.Tr([html.Th(row[0], scope="row"), *(html.Td(cell) for cell in row[1:])]) for row in rows]
    columns = html.Thead(html.Tr([html.Th(word, scope="col") for word in head]))
    return html.Div(
        html.Table([columns, html.Tbody(body)], className="tb found"),
        className="scrollx-in scrolly tall",
        tabIndex="0",
        role="region",
        **aria({"aria-label": label}),
    )


def targets(claim: Json) -> html.Div:
    """Every target with a fit: S_min, B_crit and noise scale in the task's unit, κ, and whether it counts."""
    rows = [
        (
            row["task"],
            exactly(row["target"]),
            row["optimizer"],
            row["unit"],
            significant(row["min_steps"]),
            *_with_ends(in_units(row, "critical_batch")),
            *_with_ends(in_units(row, "near_critical")),
            NOTHING if row["near_critical"] is None else f"{row['critical_batch'] / row['near_critical']:.2f}",
            "yes" if row["exclusion"] is None else "no",
        )
        for row in claim["targets"]
        if row["critical_batch"] is not None
    ]
    head = ("Task", "Target", "Optimizer", "Unit", "S_min", "B_crit", "95 %", "Noise scale", "95 %", "κ", "Counts")
    return table(head, rows, "Targets")


def all_figures(claim: Json) -> html.Div:
    """The figures of every choice of average, targets and tasks; none for fewer than five tasks."""
    rows = []
    for one in claim["series"]:
        names = (one["tasks"], one["targets"], AVERAGES.get(one["average"], one["average"]), count(len(one["points"])))
        found = one["agreement"]
        if found is None:
            rows.append((*names, *[NOTHING] * (len(FIGURES) + 1)))
            continue
        said = [bracketed(Interval(**found[name]), percent="within" in name) for name in FIGURES]
        rows.append((*names, *said, significant(found["decades"])))
    of_figures = ("r² about the fit", "r² about y = x", "Off by, rms", "Within × ÷ 2", "Within × ÷ 3", "Slope")
    head = ("Tasks", "Targets", "Average", "Points", *of_figures, "Decades")
    return table(head, rows, "Figures of every choice of tasks")


def hooks(claim: Json) -> html.Div:
    """Windows with a bounded interval, those of them that hold the exact value, and measured over exact."""
    rows = [
        (
            row["task"],
            count(row["num_windows"]),
            _share_of(row["num_bounded"], row["num_windows"]),
            _share_of(row["num_holding"], row["num_compared"]),
            NOTHING if row["median_ratio"] is None else f"{row['median_ratio']:.3f}",
        )
        for row in claim["hooks"]
    ]
    return table(("Task", "Windows", "Bounded", "Hold exact", "Ratio, median"), rows, "Hooks")


def quadratics(claim: Json) -> html.Div:
    """Measured against known noise scales, in examples; their names say in words which quadratic each is."""
    rows = [
        (
            row["task"].removeprefix("quadratic_").replace("_", " "),
            count(row["num_windows"]),
            count(row["num_bounded"]),
            count(row["num_holding"]),
            *(significant(row[name]) for name in ("measured", "exact", "exact_hessian")),
        )
        for row in claim["quadratics"]
    ]
    head = ("Quadratic", "Windows", "Bounded", "Holding", "Measured", "Exact", "Hessian")
    return table(head, rows, "Quadratics")


def growth(claim: Json) -> html.Div:
    """Noise scale late in the run over that early in it, in examples."""
    rows = [
        (
            row["task"],
            significant(row["early"]),
            significant(row["late"]),
            ratio(row["late"] / row["early"] if row["early"] else None),
            f"{share(row['lowest_at'])}{', dips' if row['lowest_at'] > 0 else ''}",
        )
        for row in claim["growth"]
    ]
    return table(("Task", "First quarter", "Last quarter", "Ratio", "Lowest at"), rows, "Growth")


def loss_laws(claim: Json) -> html.Div:
    """Noise scale ∝ loss to a power along one run; last the test of model sizes at an equal loss."""
    rows: list[Row] = [
        (
            row["task"],
            bracketed(Interval(**row["exponent"])),
            significant(row["r_squared"], 2),
            f"{significant(row['highest_loss'])} to {significant(row['lowest_loss'])}",
            count(row["num_windows"]),
        )
        for row in claim["loss_laws"]
    ]
    return table(("Task", "Exponent, 95 %", "r²", "Loss", "Windows"), rows, "Noise scale and loss")


def size_words(claim: Json) -> str:
    """Whether a model's size acts beside its loss."""
    found = claim["size_effect"]
    if found is None:
        return "Model sizes at an equal loss: the two other sizes of digits_mlp were not run."
    sizes = ", ".join(count(size) for size in found["sizes"])
    exponents = [bracketed(Interval(**found[name])) for name in ("loss_exponent", "size_exponent")]
    return (
        f"Model sizes at an equal loss (digits_mlp with {sizes} hidden units, {count(found['num_windows'])} windows): "
        f"noise scale ∝ loss^a · size^b with a = {exponents[0]}, b = {exponents[1]}."
    )


def misfits(claim: Json) -> html.Div:
    """Measured steps against the fitted curve."""
    rows = [
        (
            row["task"],
            exactly(row["target"]),
            count(row["num_points"]),
            f"{row['rms_factor']:.2f}",
            f"{row['largest_factor']:.2f}",
            count(row["farthest_batch"]),
        )
        for row in claim["misfits"]
    ]
    head = ("Task", "Target", "Batch sizes", "Off by, rms", "Farthest", "At batch")
    return table(head, rows, "Fitted curve")


def rates(claim: Json) -> html.Div:
    """Best learning rate ∝ batch to a power."""
    rows = [
        (row["task"], row["optimizer"], *(significant(row[name], 2) for name in ("below", "above", "over_all")))
        for row in claim["rate_growth"]
    ]
    return table(("Task", "Optimizer", "Below B_crit", "Above B_crit", "All"), rows, "Learning rates")


def adaptive(claim: Json) -> html.Div:
    """Cost of a batch that follows the noise scale over that of the constant one."""
    rows = [
        (
            task,
            f"{count(one['smallest'])} to {count(one['largest'])}",
            f"{one['foreseen']:.2f}",
            "missed" if one["measured"] is None else f"{one['measured']:.2f}",
        )
        for task, one in sorted(claim["adaptive"].items())
    ]
    return table(("Task", "Batch", "Foreseen", "Measured"), rows, "Adaptive batch")


def policies(advice: Json) -> html.Div:
    """Regret of every policy over all starts and over those that started right, and its cost over keeping."""
    found: dict[tuple[str, str, str], dict[str, Json]] = {}
    for row in advice["policies"]:
        found.setdefault((row["tasks"], row["rate"], row["policy"]), {})[row["kind"]] = row
    rows = [
        (
            policy,
            tasks,
            rate,
            *(_regret(kinds.get(kind)) for kind in ADVISED_STARTS),
            _relative(kinds.get("all")),
            share(kinds["all"]["missed"]) if "all" in kinds else NOTHING,
        )
        for (tasks, rate, policy), kinds in found.items()
    ]
    head = ("Policy", "Tasks", "Rate", "All starts", "Started right", "Cost over keeping", "Missed")
    return table(head, rows, "Policies")


def recommendations(advice: Json) -> html.Div:
    """How often recommendations half-way show, hold and decide."""
    rows = [
        (
            row["share"],
            row["rate"],
            row["noise"],
            row["kappa"],
            count(row["runs"]),
            share(row["shown"]),
            *(_share_with_ends(row, name) for name in ("holds", "decided")),
            share(row["right"]),
        )
        for row in advice["recommendations"]
    ]
    head = ("At", "Rate", "Noise scale", "κ from", "Looks", "Shown", "Hold B_crit", "Decide", "Right of these")
    return table(head, rows, "Recommendations")


@dataclass(frozen=True, slots=True)
class FurtherClaim:
    """A claim beside the headline: its card, and the table in it."""

    card_id: str
    title: str
    subtitle: str
    table: Callable[[Json], html.Div]
    footer: Callable[[Json], str] | None = None


CLAIMS = (
    FurtherClaim(
        card_id="reproduce-hooks-card",
        title="Hooks against every example",
        subtitle="The same trajectories: it tests the measuring, not the sampling",
        table=hooks,
    ),
    FurtherClaim(
        card_id="reproduce-quadratics-card",
        title="Where the truth is known",
        subtitle="Noisy quadratics, examples, averaged over the run",
        table=quadratics,
    ),
    FurtherClaim(
        card_id="reproduce-growth-card",
        title="Noise grows during training",
        subtitle="Examples, along the tuned run nearest B_crit",
        table=growth,
    ),
    FurtherClaim(
        card_id="reproduce-loss-card",
        title="Noise scale against loss",
        subtitle="Power of the loss along that run; loss and time go together",
        table=loss_laws,
        footer=size_words,
    ),
    FurtherClaim(
        card_id="reproduce-misfits-card",
        title="Steps against the fitted curve",
        subtitle="S_min (1 + B_crit / B), for each target",
        table=misfits,
    ),
    FurtherClaim(
        card_id="reproduce-rates-card",
        title="Best learning rate against batch",
        subtitle="Power of the batch; few batch sizes, so no intervals",
        table=rates,
    ),
    FurtherClaim(
        card_id="reproduce-adaptive-card",
        title="Batch that follows the noise scale",
        subtitle="Cost over that of the constant one; one run each",
        table=adaptive,
    ),
)


def _with_ends(found: Interval) -> tuple[str, str]:
    return significant(found.value), span(found.low, found.high) if found.low and found.high else "open"


def _share_of(part: int, whole: int) -> str:
    return share(part / whole) if whole else NOTHING


def _regret(row: Json | None) -> str:
    return NOTHING if row is None else f"{row['median']:.0f} / {row['p90']:.0f} %"


def _relative(row: Json | None) -> str:
    return NOTHING if row is None else bracketed(Interval(row["relative"], row["low"], row["high"]))


def _share_with_ends(row: Json, name: str) -> str:
    if row[name] is None:
        return NOTHING
    return bracketed(Interval(row[name], row[f"{name}_low"], row[f"{name}_high"]), percent=True)
