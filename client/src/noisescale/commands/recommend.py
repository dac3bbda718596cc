"""`noisescale recommend`: the batch of a run that a server knows, or of a language model before its first step.

The second needs no server and no run.
"""

import argparse
import sys

from noisescale.ask.asking import recommendation_from, with_query
from noisescale.commands.on_server import add_url, ask_server
from noisescale.commands.question_options import add_question_options, given_options
from noisescale.commands.terminal import Terminal, printable, tell
from noisescale.stored.api import Api, path_of
from noisescale.stored.finding import find_run
from noisescale_core.advice.language_model import PlannedModel
from noisescale_core.advice.limits.worth import SPLIT
from noisescale_core.advice.question import Question
from noisescale_core.advice.words.of_language_models import NAMED, said
from noisescale_core.errors import ConfigError, DomainError
from noisescale_core.theory.language_models import TOKENS_PER_PARAMETER

OF_A_MODEL = ("tokens", "params", "optimizer", "sequence_length", "tokens_per_step", "mixture_of_experts")
"""Options that only a model before its first run has."""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "recommend",
        help="which batch to use: a run's, or to begin with a language model's, from its planned tokens",
        description="Of a run: from what a server has of it. Of a language model before any run, from --tokens or "
        "--params: pre-training from scratch on text, one epoch, Adam or AdamW; needs no server.",
    )
    parser.add_argument(
        "run_name", metavar="RUN", nargs="?", help="of this run, by its name or id, or the beginning of either"
    )
    parser.add_argument("--tokens", type=float, help="tokens that the model is to be trained on, as 20e9")
    parser.add_argument(
        "--params",
        type=float,
        help=f"parameters of the model; without --tokens, {TOKENS_PER_PARAMETER:g} tokens each are assumed",
    )
    parser.add_argument("--optimizer", help="adamw (as without it) or adam; others are not published")
    parser.add_argument("--sequence-length", type=int, help="tokens of an example: the batch is said in sequences, too")
    parser.add_argument("--tokens-per-step", type=float, help="price: what a step saved is worth in tokens")
    parser.add_argument(
        "--preference",
        type=preference,
        help=f"without a price: weight of steps against tokens, 0 to 1, or {', '.join(NAMED)} (as large labs buy time)",
    )
    parser.add_argument(
        "--mixture-of-experts", action="store_true", help="a mixture of experts: each token goes to some of them"
    )
    add_url(parser)
    add_question_options(parser, but=("preference",))
    parser.set_defaults(run=run)


def preference(said: str) -> float:
    """A preference by its number or name.

    Args:
        said: On the command line.

    Raises:
        ArgumentTypeError: If it is neither.
    """
    try:
        return NAMED.get(said) or float(said)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a number from 0 to 1, or one of {', '.join(NAMED)}: got {said!r}"
        ) from None


def run(arguments: argparse.Namespace) -> int:
    """0 with a batch; 1 without such a run or an answer; 2 where the question is none that can be answered."""
    try:
        _refuse_both(arguments)
    except ConfigError as error:
        print(f"noisescale recommend: {error}", file=sys.stderr)
        return 2
    if arguments.run_name is None:
        return _of_language_model(arguments)
    return ask_server("recommend", arguments.url, lambda api: _of_run(api, arguments))


def _refuse_both(arguments: argparse.Namespace) -> None:
    """Raise for options of a run without one, and for those of a model beside a run.

    Raises:
        ConfigError: That names the option.
    """
    of_run = [name for name in given_options(arguments) if name != "preference"]
    of_model = [name for name in OF_A_MODEL if getattr(arguments, name) not in (None, False)]
    if arguments.run_name is None and of_run:
        raise ConfigError(f"--{of_run[0].replace('_', '-')} is a question about a run: name the run, too")
    if arguments.run_name is not None and of_model:
        raise ConfigError(
            f"--{of_model[0].replace('_', '-')} is of a model that is only planned, and {arguments.run_name!r} is a "
            "run: leave one of them out"
        )


def _of_run(api: Api, arguments: argparse.Namespace) -> int:
    question = Question.of(given_options(arguments))
    found = find_run(api, arguments.run_name)
    advice = recommendation_from(api.get(with_query(path_of("runs", found["id"], "recommendation"), question)))
    headline, *rest = str(advice).splitlines()
    for line in (Terminal.of_process().styled(headline, "bold"), *(printable(line) for line in rest)):
        tell(line)
    return 0


def _of_language_model(arguments: argparse.Namespace) -> int:
    try:
        planned = PlannedModel(
            tokens=arguments.tokens,
            params=arguments.params,
            sequence_length=1 if arguments.sequence_length is None else arguments.sequence_length,
            optimizer=arguments.optimizer or "adamw",
            is_mixture=arguments.mixture_of_experts,
        )
        lines = said(
            planned.model,
            are_tokens_assumed=arguments.tokens is None,
            sequence_length=arguments.sequence_length,
            tokens_per_step=arguments.tokens_per_step,
            preference=SPLIT if arguments.preference is None else arguments.preference,
        )
    except DomainError as error:
        print(_as_flag(str(error)), file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


def _as_flag(message: str) -> str:
    """A message that begins with a field, as the command line names it."""
    field, rest = message.split(" ", 1)
    return f"--{field.replace('_', '-')} {rest}"
