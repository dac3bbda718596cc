"""What is said about the batch of a language model before its first step."""

from noisescale_core.theory.language_models import (
    GROWTH,
    NUM_POINTS,
    TOKENS_PER_PARAMETER,
    Advice,
    LanguageModel,
    PriorInterval,
    advise,
)

MONEY, TIME = 0.2, 0.8
"""Preferences at which the answer is shown beside the asked one, where no price is stated."""

NAMED = {"money": MONEY, "balanced": 0.5, "time": TIME, "frontier": 5 / 6}
"""Preferences by name. Large labs' models are trained at up to 4 to 6 times the law's B_crit, which is a step worth 16
to 36 critical batches: 25 of them is a preference of 5/6 (`docs/language_models.md`)."""

EXTRAPOLATED = "no published point is of so many or so few tokens: extrapolated"

TO_CHANGE = "what a step is worth, sweeps of your own, and the noise scale that noisescale.watch() measures in the run"

SOURCES = "Zhang et al. 2024, Step Law 2025, MLPerf"


def said(
    model: LanguageModel,
    *,
    are_tokens_assumed: bool = False,
    sequence_length: int | None = None,
    tokens_per_step: float | None = None,
    preference: float = 0.5,
) -> list[str]:
    """The answer in lines: the batch, what it may cost, what it rests on, the rate, and what would change it.

    Args:
        model: What is planned.
        are_tokens_assumed: They follow from its size.
        sequence_length: Tokens of an example.
        tokens_per_step: The price of a step, in tokens.
        preference: Weight of steps against tokens, where no price is stated.

    Raises:
        DomainError: As `advise`.
    """
    found = advise(model, tokens_per_step=tokens_per_step, preference=preference)
    in_sequences = _in_sequences(found.batch.value, sequence_length)
    lines = [
        f"batch      {_interval(found.batch)}{in_sequences}, {priced(tokens_per_step, preference)}",
        f"risk       {risk(found)}",
        f"rests on   {because(model, found, are_tokens_assumed=are_tokens_assumed)}",
        f"floor      below {_tokens(found.floor)} a batch wastes tokens again",
        f"rate       {rate(found)}",
        f"ramp       {ramp(found)}",
    ]
    if found.is_extrapolated:
        lines.append(f"careful    {EXTRAPOLATED}")
    if tokens_per_step is None:
        others = [
            f"{_interval(advise(model, preference=other).batch)} if {what} matters"
            for what, other in (("money", MONEY), ("time", TIME))
        ]
        lines.insert(1, f"or         {', '.join(others)}")
    lines.append(f"to change  {TO_CHANGE}")
    return lines


def priced(tokens_per_step: float | None, preference: float) -> str:
    """What a step is taken to be worth.

    Args:
        tokens_per_step: As stated, in tokens.
        preference: Weight of steps against tokens, where no price is stated.
    """
    if tokens_per_step is None:
        return f"steps weigh {preference:.3g}, tokens {1 - preference:.3g}"
    return f"at {_tokens(tokens_per_step)} a step"


def risk(found: Advice) -> str:
    """What the batch may cost.

    Args:
        found: The batch.
    """
    return (
        f"{100 * found.regret:.0f} % more than the best batch is expected, and more than "
        f"{100 * found.regret_in_20:.0f} % in one case of 20"
    )


def ramp(found: Advice) -> str:
    """Whether a batch that grows is worth it.

    Args:
        found: The batch.
    """
    gain, (growth, low, high) = found.ramp_gain, GROWTH
    saves = f"{_share(gain.value)} % ({_share(gain.low)} – {_share(gain.high)} %)"
    return (
        f"a batch that grows saves {saves} here, as the noise scale grows as the tokens' power {growth:g} ({low:g} – "
        f"{high:g}): one is enough"
    )


def _share(gain: float) -> str:
    return f"{float(f'{100 * gain:.1g}'):g}"


def because(model: LanguageModel, found: Advice, *, are_tokens_assumed: bool) -> str:
    """What the batch rests on.

    Args:
        model: What is planned.
        found: The batch.
        are_tokens_assumed: The tokens follow from the model's size.
    """
    assumed = f", assumed: {TOKENS_PER_PARAMETER:g} a parameter" if are_tokens_assumed else ""
    mixture = ", moved up × 2.65 for a mixture of experts" if model.is_mixture else ""
    return (
        f"B_crit {_interval(found.critical)}, from {_tokens(model.tokens)} planned{assumed}, and "
        f"{NUM_POINTS} published points ({SOURCES}){mixture}"
    )


def taken_into_account(tokens: float) -> str:
    """That a run's answer rests on its planned tokens, too.

    Args:
        tokens: Planned.
    """
    far = ", extrapolated" if LanguageModel(tokens).is_extrapolated else ""
    return (
        f"Besides the measurement, the answer rests on {_tokens(tokens)} planned and {NUM_POINTS} published points of "
        f"language models trained from scratch ({SOURCES}{far}). Where this run goes on from trained weights, give its "
        "task another family than a language's: family='fine-tuning'."
    )


def rate(found: Advice) -> str:
    """What is known of the learning rate.

    Args:
        found: The batch.
    """
    return (
        "not known before the run; one that was tuned at a smaller batch grows with its root up to "
        f"{_tokens(found.floor)}, and stays from there on"
    )


def _interval(one: PriorInterval) -> str:
    return f"{_short(one.value)} [{_short(one.low)}, {_short(one.high)}] tokens"


def _in_sequences(tokens: float, length: int | None) -> str:
    return "" if length is None else f" = {float(f'{tokens / length:.2g}'):,.0f} sequences of {length:,}"


def _tokens(count: float) -> str:
    return f"{_short(count)} tokens"


def _short(count: float) -> str:
    """Two digits: nothing here is known to more."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= 0.995 * size:
            return f"{float(f'{count / size:.2g}'):g} {letter}"
    return f"{float(f'{count:.2g}'):g}"
