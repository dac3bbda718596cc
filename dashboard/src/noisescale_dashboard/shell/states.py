"""What a page shows instead of data: nothing there yet, not found, not loaded."""

from datetime import UTC, datetime

from dash import html

from noisescale_dashboard.api.transport import ApiProblem
from noisescale_dashboard.shell import first_run
from noisescale_dashboard.shell.parts import icon, link, note


def no_runs(*, is_filtered: bool) -> html.Section:
    """The list is empty: what will be here and how to fill it, or that the filters leave nothing."""
    if is_filtered:
        text = "No run matches these filters. Remove one of them to see more."
        return html.Section(
            [html.H2("Nothing found", className="tt"), html.P(text, className="t2")], className="card empty"
        )
    return first_run.layout()


SWEEP_LINES = """import noisescale

def train(batch_size, lr, seed):
    ...                                # set up model, data and optimizer
    for step in range(10_001):
        if step in checkpoints:
            yield step, evaluate()     # steps so far, metric
        ...                            # one optimizer step

noisescale.sweep(train, [16, 64, 256, 1024], target=0.5, project="digits")
"""


def no_sweeps() -> html.Section:
    """There are no sweeps: what they are for and how to begin one."""
    return html.Section(
        [
            html.H2("No sweeps yet", className="tt"),
            html.P(
                "A sweep trains to one target at several batch sizes and measures the critical batch size, which ties "
                "the noise scale of your runs to what a larger batch really saves.",
                className="t2",
            ),
            html.Pre(SWEEP_LINES, className="mono code", tabIndex="0"),
            html.P(link("See published sweeps", "/sweeps?tab=published", class_name="btn")),
        ],
        className="card empty",
    )


def no_such_sweep() -> html.Section:
    """The address names no sweep."""
    return html.Section(
        [
            html.H1("No such sweep", className="h1"),
            html.P("It was deleted, the address is wrong, or it belongs to someone else.", className="lede"),
            html.P(link("All sweeps", "/sweeps", class_name="btn")),
        ],
        className="card empty",
    )


def no_such_run() -> html.Section:
    """The address names no run."""
    return html.Section(
        [
            html.H1("No such run", className="h1"),
            html.P("It was deleted, the address is wrong, or it belongs to someone else.", className="lede"),
            html.P(link("All runs", "/runs", class_name="btn")),
        ],
        className="card empty",
    )


def no_such_page() -> html.Section:
    """The address names no page."""
    return html.Section(
        [
            html.H1("No such page", className="h1"),
            html.P("The address is wrong, or the page is gone. Everything can be reached from here:", className="lede"),
            html.P(
                [link("Overview", "/", class_name="btn"), link("All runs", "/runs", class_name="btn")], className="row"
            ),
        ],
        className="card empty",
    )


def not_loaded(problem: ApiProblem) -> html.Section:
    """The API did not answer: what failed, that training goes on, and the request for a bug report."""
    now = datetime.now(UTC).strftime("%H:%M:%S UTC")
    status = "no answer" if problem.status is None else str(problem.status)
    return html.Section(
        [
            icon("warn"),
            html.Div(
                [
                    html.H2("Not loaded", className="tt"),
                    html.P(f"{problem.title}: {problem.detail}", className="t2"),
                    html.P(
                        "Training is not affected: the client keeps its measurements and sends them later.",
                        className="t2",
                    ),
                    html.A("Try again", href="", className="btn"),
                    html.P(f"{problem.request} · {status} · {now}", className="mono dim"),
                ]
            ),
        ],
        className="card failed",
        role="alert",
    )


def paused(shown_until: str | None) -> html.Div:
    """Live updates stopped; what is shown is older."""
    until = f" Shown: data until {shown_until}." if shown_until else ""
    words = f"Live updates paused.{until} The next attempt follows in a few seconds."
    # the banner of the shell says the same for the whole page as soon as it is there
    return html.Div(note(words, icon_name="clock"), className="stale")
