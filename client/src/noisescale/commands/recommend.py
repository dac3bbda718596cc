"""`noisescale recommend`: the batch of a language model before its first step, without a server and before any run."""

import argparse
import sys

from noisescale_core.advice.language_model import PlannedModel
from noisescale_core.advice.words.of_language_models import NAMED, said
from noisescale_core.advice.worth import SPLIT
from noisescale_core.errors import DomainError
from noisescale_core.theory.language_models import TOKENS_PER_PARAMETER


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "recommend",
        help="which batch to begin with: a language model's, from its planned tokens",
        description="Pre-training from scratch on text, one epoch, Adam or AdamW. Needs no server and no run.",
    )
    parser.add_argument("--tokens", type=float, help="tokens that the model is to be trained on, as 20e9")
    parser.add_argument(
        "--params",
        type=float,
        help=f"parameters of the model; without --tokens, {TOKENS_PER_PARAMETER:g} tokens each are assumed",
    )
    parser.add_argument("--optimizer", default="adamw", help="adamw (as without it) or adam; others are not published")
    parser.add_argument("--sequence-length", type=int, help="tokens of an example: the batch is said in sequences, too")
    parser.add_argument("--tokens-per-step", type=float, help="price: what a step saved is worth in tokens")
    parser.add_argument(
        "--preference",
        type=preference,
        default=SPLIT,
        help=f"without a price: weight of steps against tokens, 0 to 1, or {', '.join(NAMED)} (as large labs buy time)",
    )
    parser.add_argument("--mixture-of-experts", action="store_true", help="each token goes to some experts")
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
    """0 with a batch; 2 where the question is none that published runs answer."""
    try:
        planned = PlannedModel(
            tokens=arguments.tokens,
            params=arguments.params,
            sequence_length=1 if arguments.sequence_length is None else arguments.sequence_length,
            optimizer=arguments.optimizer,
            is_mixture=arguments.mixture_of_experts,
        )
        lines = said(
            planned.model,
            are_tokens_assumed=arguments.tokens is None,
            sequence_length=arguments.sequence_length,
            tokens_per_step=arguments.tokens_per_step,
            preference=arguments.preference,
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
