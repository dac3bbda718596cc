"""What a recommendation is made of, as a caller sees it; names and units as in `docs/rest.md`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its interval.

    Attributes:
        value: The best guess.
        low: Lower end.
        high: Upper end.
        level: Probability that the interval holds the truth.
    """

    value: float
    low: float
    high: float
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class Measured:
    """The noise scale that the advice rests on, in examples.

    Attributes:
        state: "resolved", "tentative" or "unresolved".
        value: None while unresolved.
        low: Lower end of the interval, or a bound.
        high: Upper end; None without one.
        level: Of the interval.
        z: |G|² in its own standard errors.
    """

    state: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    z: float | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """What a step is worth.

    Attributes:
        examples_per_step: r: examples one would spend to save an optimizer step.
        source: Which words it was said in.
        text: Those words, as a sentence.
    """

    examples_per_step: float
    source: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How the noise scale is tied to a critical batch size.

    Attributes:
        state: "calibrated" from one sweep or branch of one's own on, else "uncalibrated".
        kappa: κ, the critical batch size in noise scales.
        measurements: Sweeps and branches behind it.
        text: The same in a sentence.
    """

    state: str
    kappa: Interval | None = None
    measurements: int = 0
    text: str | None = None


@dataclass(frozen=True, slots=True)
class LearningRate:
    """The learning rate that goes with the recommended batch; the centre of a short search.

    Attributes:
        current: Now.
        recommended: For the recommended batch.
        low: Lower end of the statistical interval.
        high: Upper end.
        rule: How it was found.
        candidates: What to try.
        text: What it is good for.
    """

    current: float
    recommended: float
    low: float
    high: float
    rule: str
    candidates: tuple[float, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class NowAndThen:
    """A share of the best possible progress, at the present batch and at the recommended one."""

    now: Interval
    recommended: Interval


@dataclass(frozen=True, slots=True)
class Predicted:
    """Steps and examples to the same loss at the recommended batch, relative to the present one."""

    steps_factor: Interval
    examples_factor: Interval


@dataclass(frozen=True, slots=True)
class Waste:
    """Examples so far that smaller batches would not have needed.

    Attributes:
        examples: How many.
        fraction: Their share of the examples where the noise scale has an interval.
        covered: The share of all examples for which that is so.
        usd: The same share of the money; None without a price.
        text: What kind of number this is.
    """

    examples: Interval
    fraction: Interval
    covered: float
    usd: Interval | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Caution:
    """Something to know before following the advice."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class LimitedBatch:
    """The best batch inside all limits.

    Attributes:
        binding: The limits that moved it.
        text: Why, or what is possible.
        batch_size: In examples; None where they exclude each other.
    """

    binding: tuple[str, ...]
    text: str
    batch_size: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One hyper-parameter to set with the recommended batch.

    Attributes:
        field: Its name.
        before: Now.
        rule: How it was found.
        after: With the recommended batch; None where the rule has no answer.
        text: The same in a sentence.
        is_verified: Whether theory covers it.
    """

    field: str
    before: float
    rule: str
    after: float | None = None
    text: str = ""
    is_verified: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the rest of the run.

    Attributes:
        step: Optimizer step at which it begins.
        examples: Examples used before it.
        num_steps: Optimizer steps that it takes.
        batch_size: Global batch in examples.
        learning_rate: None where the run logs none.
    """

    step: int
    examples: float
    num_steps: float
    batch_size: int
    learning_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Batches for the rest of the run.

    Attributes:
        stages: The first one from now on.
        growth_exponent: q of a noise scale that goes on as progress^q.
        gamma: γ of that forecast; 1 where it does not change.
        saving: Of the best schedule against the best constant batch, as a share of the cost.
        hysteresis: Factor that a change must exceed.
        why: In a sentence.
    """

    stages: tuple[Stage, ...]
    growth_exponent: float
    gamma: float
    saving: float
    hysteresis: float
    why: str
