"""Which column is what: guessed from names as people write them, changed by flags."""

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from noisescale_core.errors import ConfigError

ROLES = {
    "step": "optimizer step",
    "time": "Unix seconds",
    "elapsed": "seconds since the start",
    "loss": "training loss",
    "metric": "evaluation metric that a target is set for",
    "tokens": "tokens seen so far",
    "examples": "examples seen so far",
    "batch": "examples of an optimizer step",
    "batch-tokens": "tokens of an optimizer step",
    "sequence-length": "tokens of an example",
    "learning-rate": "learning rate",
    "gradient-norm": "norm of the gradient before clipping",
    "price": "USD of a device and hour",
    "steps-to-target": "steps that the target took",
    "seed": "which repeat it is",
}
"""Each role with what it means; also the names of the flags."""

CONSTANT = ("batch", "batch-tokens", "sequence-length", "learning-rate", "price", "seed", "steps-to-target")
"""Roles that one number may fill for a whole run."""

_EVALUATED = r"(?:eval(?:uation)?|val(?:id(?:ation)?)?|test|dev|held_out)"
_NAMES: dict[str, tuple[str, ...]] = {
    "step": (
        r"(?:global_|train(?:er|ing)?_(?:global_)?|optimizer_|opt_|current_)?step(?:s|_num)?",
        r"(?:num_|n_)steps",
        r"(?:train_|num_)?iter(?:s|ation|ations|_num)?",
    ),
    "time": (r"(?:wall_time|timestamp|time_unix|unix_time|created_at)",),
    "elapsed": (
        r"(?:elapsed(?:_time)?(?:_s|_seconds)?|runtime|wall_clock(?:_s|_seconds)?|relative_time|seconds|total_time)",
    ),
    "loss": (
        r"(?:train|training)_loss",
        r"loss",
        r"(?:lm|ce|cross_entropy|nll|total|mean|avg)_loss",
        r"loss_metrics_global_avg_loss",
        r"(?:train|training)_(?:\w+_)?loss(?:_\w+)?",
        rf"(?!.*(?:^|_){_EVALUATED}(?:_|$))(?:\w+_)?loss(?:_avg)?",
        r"final_loss|smooth_loss",
    ),
    "metric": (
        rf"{_EVALUATED}_(?:lm_|ce_|cross_entropy_)?loss",
        rf"(?:loss_{_EVALUATED}|{_EVALUATED}_(?:\w+_)?(?:loss|cross_entropy|perplexity|ppl|bpb|nll))",
        rf"{_EVALUATED}_(?:error|accuracy|acc|score)",
    ),
    "tokens": (
        r"(?:train_)?(?:num_|n_|total_|consumed_)?(?:input_)?(?:train_)?tokens(?:_seen|_consumed|_processed|_total)?",
        r"(?:train_)?num_input_tokens_seen",
        r"(?:training_)?data_size_tokens|d_tokens|dataset_tokens",
    ),
    "examples": (
        r"(?:num_|n_|total_)?(?:consumed_|train_)?(?:samples|examples)(?:_seen|_consumed|_processed)?",
        r"consumed_train_samples",
    ),
    "batch": (
        r"(?:global|effective|train_global|total_train)_batch_size",
        r"(?:global_|train_)?batch_size(?:_sequences|_examples|_samples)?",
        r"global_batch|batch|bs|gbs|train_batch",
    ),
    "batch-tokens": (
        r"(?:global_|total_)?batch_(?:size_)?(?:in_)?tokens",
        r"tokens_per_(?:step|iter|iteration|batch|update)|total_batch_size",
    ),
    "sequence-length": (r"(?:max_)?(?:seq|sequence|context|block|ctx)_?(?:len|length|size)", r"n_ctx|seqlen"),
    "learning-rate": (
        r"(?:train_)?(?:learning_rate|lr)",
        r"lr_(?:group_?0|0|pg_?1|adam(?:_w)?|sgd|lion|muon)",
        r"(?:base|peak|max|init(?:ial)?)_(?:learning_rate|lr)",
        r"(?:train|optim(?:izer)?)_(?:\w+_)?(?:learning_rate|lr)",
    ),
    "gradient-norm": (
        # of all parameters and before clipping: any other word in front may be a layer's, or "clipped"
        r"(?:(?:train(?:ing|er)?|total|global|raw|unclipped|pre_?clip|optim(?:izer)?|metrics|stats|model|actor|learner)_)*"
        r"grad(?:ient)?s?_(?:l2_)?norm(?:_(?:(?:before|pre)_clip(?:ping)?|unclipped))?",
        r"(?:train_)?gnorm",
    ),
    "price": (r"(?:price|cost)_per_(?:device_|gpu_)?hour|usd_per_(?:device_|gpu_)?hour|price",),
    "steps-to-target": (r"(?:num_)?(?:steps|iterations)_to_(?:target|result|goal)",),
    "seed": (r"(?:random_|data_|model_)?seed",),
}
_WHOLE_BATCH = re.compile(r"global|effective|total|gbs")
_PARTS = re.compile(
    r"grad(?:ient)?_acc\w*|accumulat\w*|world_size|(?:num_|n_)?(?:gpus|devices|nodes|ranks)(?:_per_node)?"
)
_KNOWN = {role: [re.compile(pattern) for pattern in patterns] for role, patterns in _NAMES.items()}


@dataclass(frozen=True, slots=True)
class Taken:
    """What fills a role.

    Attributes:
        column: Name of the column; None where a number fills it.
        number: The number; None where a column does.
        origin: "given" by a flag, "guessed" from a name, the "source" itself, or the "config" of the run.
    """

    column: str | None
    number: float | None
    origin: str


MAY_COUNT = ("batch", "train_batch")
"""Names of columns that hold a batch's size in some logs, and its number in others."""


def is_count(name: str, values: Sequence[float], *, are_runs: bool = False) -> bool:
    """Whether a column of batches counts them, and says nothing of their size.

    Args:
        name: Of the column.
        values: In the first rows.
        are_runs: Each row is a run, so that sizes may differ from row to row.
    """
    if normalised(name) not in MAY_COUNT or len(values) < 2:
        return False
    differences = [after - before for before, after in pairwise(values)]
    num_up = sum(one == 1 if are_runs else one > 0 for one in differences)
    return 0 in values or 2 * num_up > len(differences)


def normalised(name: str) -> str:
    """The name in lower case with one underscore where others have spaces, slashes, dots or dashes."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def guessed(role: str, names: Iterable[str]) -> str | None:
    """The name that fits a role best; None where none does. Of equal ones the shortest, then the first by letters."""
    for pattern in _KNOWN[role]:
        fitting = [name for name in names if pattern.fullmatch(normalised(name))]
        if fitting:
            return min(fitting, key=lambda name: (len(name), name))
    return None


def chosen(
    columns: Sequence[str],
    config: Mapping[str, object],
    own: Mapping[str, str],
    flags: Mapping[str, str],
    elsewhere: Collection[str] = (),
) -> dict[str, Taken]:
    """What fills each role of a run: a flag, else what the source itself says, else a guess, else the config.

    Args:
        columns: Names of the run's values.
        config: Of the run.
        own: Roles that the source knows.
        flags: By role: the name of a column or of an entry of the config, a number, or "none".
        elsewhere: Columns of other runs of the source, and of later rows: a flag may name them, too.

    Raises:
        ConfigError: For a flag that names neither a column nor a number where one may stand.
    """
    found: dict[str, Taken] = {}
    used: set[str] = set()
    for role in ROLES:
        taken = (
            _given(role, flags[role], columns, config, elsewhere) if role in flags else _of_source(role, own, columns)
        )
        if taken is None and role not in flags:
            name = guessed(role, [name for name in columns if name not in used and name not in flags.values()])
            taken = None if name is None else Taken(name, None, "guessed")
        if taken is None and role not in flags and role in CONSTANT:
            taken = _of_config(role, config)
        if taken is not None:
            found[role] = taken
            used |= {taken.column} if taken.column is not None else set()
    return found


def _of_source(role: str, own: Mapping[str, str], columns: Sequence[str]) -> Taken | None:
    column = own.get(role)
    return Taken(column, None, "source") if column in columns else None


def _given(
    role: str, text: str, columns: Sequence[str], config: Mapping[str, object], elsewhere: Collection[str]
) -> Taken | None:
    if text in columns or text in elsewhere:
        return Taken(text, None, "given")
    if text.lower() == "none":
        return None
    number = number_of(text)
    if number is None and text in config:
        number = number_of(config[text])
    if number is not None and role in CONSTANT and number >= 0:
        return Taken(None, number, "given")
    may = " or a number" if role in CONSTANT else ""
    raise ConfigError(
        f"--{role} must name a column{may}, or be none, got {text!r}: columns are {', '.join(columns) or 'not there'}"
    )


def _of_config(role: str, config: Mapping[str, object]) -> Taken | None:
    numbers = {name: number for name, value in config.items() if (number := number_of(value)) is not None}
    name = guessed(role, numbers)
    if name is None or (role != "seed" and numbers[name] <= 0):
        return None
    if role == "batch" and not _WHOLE_BATCH.match(normalised(name)) and _is_made_of_parts(numbers):
        return None  # a micro-batch taken for the batch would be a wrong number, which nobody would see
    return Taken(None, numbers[name], f"config: {name}")


def _is_made_of_parts(numbers: Mapping[str, float]) -> bool:
    """Whether a step has several micro-batches, by accumulation or by ranks."""
    return any(number > 1 and _PARTS.fullmatch(normalised(name)) for name, number in numbers.items())


def number_of(value: object) -> float | None:
    """The number that a value is, or that it says; None for anything else, "1_000" and True included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if not isinstance(value, str) or "_" in value or not value.isascii():
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    # "1e400" says a number that no double holds; "inf" says that a loss diverged
    return None if math.isinf(number) and any(c.isdigit() for c in value) else number


def parsed_json(text: str | bytes) -> object:
    """The JSON value; a number that no double holds stays the text that it was.

    Raises:
        ValueError: For what is no JSON.
        RecursionError: For what is nested without end.
    """
    found: object = json.loads(text, parse_float=lambda one: one if number_of(one) is None else float(one))
    return found
