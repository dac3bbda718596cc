"""What is said about the batch of a language model before its first step."""

from noisescale_core.theory.language_models import NUM_POINTS, TOKENS_PER_PARAMETER, Interval, LanguageModel, advise

MONEY, TIME = 0.2, 0.8
"""Preferences at which the answer is shown beside the asked one, where no price is stated."""

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
    priced = (
        f"steps weigh {preference:g}, tokens {1 - preference:g}"
        if tokens_per_step is None
        else f"at {_tokens(tokens_per_step)} a step"
    )
    assumed = f", assumed: {TOKENS_PER_PARAMETER:g} a parameter" if are_tokens_assumed else ""
    beyond = "; no point is of so many or so few tokens: extrapolated" if found.is_extrapolated else ""
    mixture = ", moved up × 2.65 for a mixture of experts" if model.is_mixture else ""
    lines = [
        f"batch      {_interval(found.batch)}{_in_sequences(found.batch.value, sequence_length)}, {priced}",
        f"risk       {100 * found.regret:.0f} % more than the best batch is expected, and more than "
        f"{100 * found.regret_in_20:.0f} % in one case of 20",
        f"rests on   B_crit {_interval(found.critical)}, from {_tokens(model.tokens)} planned{assumed}, and "
        f"{NUM_POINTS} published points ({SOURCES}){mixture}{beyond}",
        f"floor      below {_tokens(found.floor)} a batch wastes tokens again",
        f"rate       not known before the run; one that was tuned at a smaller batch grows with its root up to "
        f"{_tokens(found.floor)}, and stays from there on",
    ]
    if tokens_per_step is None:
        others = [
            f"{_interval(advise(model, preference=other).batch)} if {what} matters"
            for what, other in (("money", MONEY), ("time", TIME))
        ]
        lines.insert(1, f"or         {', '.join(others)}")
    lines.append(
        "to change  what a step is worth (--tokens-per-step), sweeps of your own, and the noise scale that "
        "noisescale.watch() measures"
    )
    return lines


def _interval(one: Interval) -> str:
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
