"""What belongs together in a call, as one small object each: `init(units=Units("sequence", "tokens", 1024))`."""

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from noisescale.guard import Notices
from noisescale_core.errors import ConfigError

if TYPE_CHECKING:
    from noisescale.capture.sums.step_norms import Weighting
    from noisescale.capture.watch_options import Accumulate, LossReduction

P = ParamSpec("P")
R = TypeVar("R")

_notices = Notices()


@dataclass(frozen=True, slots=True)
class Units:
    """What a batch is counted in.

    Attributes:
        example: What is sampled independently, in the singular: "sequence", "image".
        unit: What noise scales are shown in: "tokens", "images".
        per_example: Units in one example.
    """

    example: str = "example"
    unit: str = "examples"
    per_example: float = 1


@dataclass(frozen=True, slots=True)
class Machine:
    """What a job runs on.

    Attributes:
        num_devices: Devices of the whole job; None: 1, or as many as a trainer's callback counts.
        device: What they are; None: where the watched parameters are.
        usd_per_device_hour: Price of one, in USD an hour; None: not known, so costs are in steps, examples and time.
    """

    num_devices: int | None = None
    device: str | None = None
    usd_per_device_hour: float | None = None

    def of_world(self, world_size: int) -> "Machine":
        """The same for a job that knows how many processes it has, where nobody has said how many devices.

        Args:
            world_size: Processes of the job, each on a device of its own.
        """
        return self if self.num_devices is not None else replace(self, num_devices=world_size)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where records go, and how often; each None comes from the environment, then from the defaults.

    Attributes:
        url: Address of the server; NOISESCALE_URL.
        api_key: NOISESCALE_API_KEY.
        log_every: Updates per row sent; NOISESCALE_LOG_EVERY.
        group_seconds: Least time between two records of layers, in seconds; NOISESCALE_GROUP_SECONDS.
        strict: Our own errors are raised instead of logged, for tests.
    """

    url: str | None = None
    api_key: str | None = None
    log_every: int | None = None
    group_seconds: float | None = None
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """How the loop forms the loss that backward starts from.

    Attributes:
        reduction: How it is reduced over the examples of a step: "mean_over_examples", "mean_over_tokens" or "sum".
        weighting: How the loop weighs micro-batches of different sizes; "by_size" makes its gradient the mean over all
            examples (or counted tokens), "equal" does not. None: "by_size", or as a trainer's callback knows it.
    """

    reduction: "LossReduction" = "mean_over_examples"
    weighting: "Weighting | None" = None

    def weighed(self, weighting: "Weighting") -> "Loss":
        """The same for a loop that is known to weigh so, where nobody has said how.

        Args:
            weighting: Of the loop.
        """
        return self if self.weighting is not None else replace(self, weighting=weighting)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What changes the training's own arithmetic; without it loss and gradients are the same to the last bit.

    Attributes:
        split: Cut each forward of the model into so many small batches: sums are added in another order, and BatchNorm
            sees smaller batches.
        accumulate: "fp32": micro-batches are added up in 32 bit by the pass that measures them: gradients of 16 bit
            are the rounding of such sums, for 4 bytes a parameter.
        fused_norm_layers: Per-example norms from a backward of LayerNorm and RMSNorm of our own: rounding changes.
    """

    split: int | None = None
    accumulate: "Accumulate" = "autograd"
    fused_norm_layers: bool = False


# Keywords that went into option objects: the older ones keep working, with a note.


class Place(NamedTuple):
    """Where an older keyword stands now.

    Attributes:
        parameter: That takes the object.
        kind: Its class.
        field: Of the object.
    """

    parameter: str
    kind: type[Any]
    field: str


def inside(parameter: str, kind: type[Any], *same: str, **renamed: str) -> dict[str, Place]:
    """The places of one object's fields, by their older keywords.

    Args:
        parameter: That takes the object.
        kind: Its class.
        same: Keywords that the fields are called like.
        renamed: From each other keyword to its field.
    """
    fields = {name: name for name in same} | renamed
    return {keyword: Place(parameter, kind, field) for keyword, field in fields.items()}


def takes_older(places: Mapping[str, Place]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function that takes these keywords, too; its signature shows the new ones alone.

    Args:
        places: By older keyword.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(*args, **renewed(call, kwargs))

        call.older = places  # type: ignore[attr-defined]
        return call

    return decorate


def renewed(function: Callable[..., object], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a call with the older ones inside of their objects.

    Args:
        function: That `takes_older`, or any other.
        keywords: As they were given.

    Raises:
        ConfigError: For an older keyword beside the object that it went into.
    """
    places: Mapping[str, Place] = getattr(function, "older", {})
    old = [keyword for keyword in keywords if keyword in places]
    found = {keyword: value for keyword, value in keywords.items() if keyword not in places}
    for keyword in old:
        parameter, kind, field = places[keyword]
        called, now = function.__name__, f"{parameter}=noisescale.{kind.__name__}({field}=...)"
        if keywords.get(parameter) is not None:
            raise ConfigError(f"{called}() got {keyword} beside {parameter}: give {now} alone")
        note = f"{called}({keyword}=...) is {called}({now}) now; the older keyword goes on working"
        _notices.once(f"{called} {keyword}", note, logging.INFO)
        found[parameter] = replace(found.get(parameter) or kind(), **{field: keywords[keyword]})
    return found
