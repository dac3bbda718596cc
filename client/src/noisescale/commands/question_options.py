"""Options for what a reader values and has, made from the fields of `Question`."""

import argparse

from noisescale_core.advice.question import FIELDS, LISTS, SWITCHES

NAMES = tuple(name for name in FIELDS if name not in LISTS)
"""Fields that a command line takes, each by an option of its name."""


def add_question_options(parser: argparse.ArgumentParser, *, but: tuple[str, ...] = ()) -> None:
    """Add an option for each field.

    Args:
        parser: Of a command.
        but: Fields that the command has options of its own for.
    """
    group = parser.add_argument_group("what you value and have", "as run.recommendation() takes them: docs/rest.md")
    for name in NAMES:
        if name in but:
            continue
        option = "--" + name.replace("_", "-")
        if name in SWITCHES:
            group.add_argument(option, action="store_const", const=True)
        else:
            group.add_argument(option, type=number, metavar="NUMBER")


def given_options(arguments: argparse.Namespace) -> dict[str, object]:
    """The fields that a command line says, by name."""
    return {name: value for name in NAMES if (value := getattr(arguments, name)) is not None}


def number(text: str) -> float:
    """A number, whole where it has no decimals.

    Args:
        text: On a command line, or in an address.
    """
    value = float(text)
    return int(value) if value.is_integer() else value
