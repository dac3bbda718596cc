"""`noisescale show RUN`: where a run stands, how its noise scale and loss went, and what to do about the batch."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from noisescale.ask.asking import recommendation_from, with_query
from noisescale.commands.on_server import add_url, ask_server
from noisescale.commands.open_page import page_of
from noisescale.commands.question_options import add_question_options, given_options
from noisescale.commands.terminal import Terminal, printable, tell
from noisescale.shown import blocks
from noisescale.stored import words
from noisescale.stored.api import Api, path_of
from noisescale.stored.finding import StoredRun, find_run
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.question import Question

LABEL = 15
POINTS = 60
"""Characters of a sparkline: each is a point of the run's series."""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("show", help="one run: where it stands, its course, its recommendation")
    parser.add_argument("run_name", metavar="RUN", help="its name or id, or the beginning of either")
    parser.add_argument("--json", action="store_true", help="the server's answers as they are: docs/rest.md")
    add_url(parser)
    add_question_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 with the run; 1 without such a run or an answer; 2 for wrong settings and questions."""
    return ask_server("show", arguments.url, lambda api: _show(api, arguments))


def _show(api: Api, arguments: argparse.Namespace) -> int:
    question = Question.of(given_options(arguments))
    found = find_run(api, arguments.run_name)
    course = api.get(path_of("runs", found["id"], "noise-scale"), points=POINTS)
    advice = api.get(with_query(path_of("runs", found["id"], "recommendation"), question))
    if arguments.json:
        said = {"run": found, "noise_scale": course, "recommendation": advice}
        tell(json.dumps(said, indent=2, ensure_ascii=False))
        return 0
    for line in lines_of(found, course["points"], advice, page_of(api, found), Terminal.of_process()):
        tell(line)
    return 0


def lines_of(
    run: StoredRun, points: Mapping[str, Sequence[Any]], advice: Mapping[str, object], page: str, terminal: Terminal
) -> Iterator[str]:
    """The run, its course and its recommendation.

    Args:
        run: As the server gives it.
        points: Columns of its series.
        advice: Its recommendation, as the server gives it.
        page: Address of its page.
        terminal: What it is shown on.
    """
    yield f"{terminal.styled(run['name'], 'bold')}  {printable(run['project'])}/{printable(run['task'])}  {run['id']}"
    for label, content in (*_standing(run), *_course(points)):
        yield f"  {terminal.styled(f'{label:<{LABEL}}', 'dim')}{printable(content)}"
    yield ""
    headline, *rest = str(recommendation_from(advice)).splitlines()
    yield terminal.styled(headline, "bold")
    yield from (printable(line) for line in rest)
    yield ""
    yield page


def _standing(run: StoredRun) -> Iterator[tuple[str, str]]:
    yield "state", f"{words.state(run)}, {words.steps(run)} steps"
    yield "loss", "–" if run.get("loss") is None else number(run["loss"])
    if run.get("lr") is not None:
        yield "learning rate", f"{run['lr']:.4g}, {run.get('optimizer') or 'unknown optimizer'}"
    if run.get("global_batch") is not None:
        yield "batch", words.batch_of(run)
    yield "noise scale", words.noise_scale_of(run)
    if run.get("example_efficiency"):
        yield f"per {run['example']}", f"{words.share(run['example_efficiency'])} of the best possible progress"
        yield "per step", f"{words.share(run['step_efficiency'])} of it"
    if run.get("tags"):
        yield "tags", ", ".join(run["tags"])


def _course(points: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, str]]:
    """A sparkline of the noise scale and one of the loss, with first and last value."""
    for label, values in (("noise scale", points["value"]), ("loss", points["loss"])):
        known = [value for value in values if value is not None]
        if len(known) > 1:
            ends = f"{number(known[0])} … {number(known[-1])}"
            yield label, f"{blocks(values, is_log=label == 'noise scale')}  {ends}"
