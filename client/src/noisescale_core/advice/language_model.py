"""The recommendation for a language model before its first step, from published sweeps: it needs no run, no server."""

from dataclasses import dataclass
from numbers import Real

from noisescale_core.advice.answer import Recommendation
from noisescale_core.advice.limited import round_batch
from noisescale_core.advice.limits.worth import SPLIT
from noisescale_core.advice.parts.parts import AtPreference, Caution, ExchangeRate, Interval
from noisescale_core.advice.question import Question
from noisescale_core.advice.words import of_language_models as wording
from noisescale_core.errors import DomainError
from noisescale_core.theory import language_models as theory
from noisescale_core.theory.language_models import OPTIMIZERS, TOKENS_PER_PARAMETER, LanguageModel, advise


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedModel:
    """What is known of the training.

    Attributes:
        tokens: To be trained on; None: 20 a parameter.
        params: Parameters of the model; needed without tokens.
        sequence_length: Tokens of an example, whole; 1 where batches are to be counted in tokens.
        optimizer: Its name, of any case.
        is_mixture: Of experts.
    """

    tokens: float | None = None
    params: float | None = None
    sequence_length: int = 1
    optimizer: str = "adamw"
    is_mixture: bool = False

    def __post_init__(self) -> None:
        """Refuse what no published run answers.

        Raises:
            DomainError: Without tokens and params, for another optimizer, or for a number that is none.
        """
        if self.tokens is None and self.params is None:
            raise DomainError("tokens is missing: say how many the model is to be trained on, as 20e9, or its params")
        for name in ("tokens", "params", "sequence_length"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
                raise DomainError(f"{name} must be a number, got {value!r}")
        for name, least in (("params", self.params), ("sequence_length", self.sequence_length)):
            if least is not None and not least >= 1:
                raise DomainError(f"{name} must be at least 1, got {least:g}")
        if self.sequence_length % 1:
            raise DomainError(f"sequence_length must be a whole number of tokens, got {self.sequence_length:g}")
        if self.optimizer.lower() not in OPTIMIZERS:
            raise DomainError(
                f"optimizer must be one of {' and '.join(OPTIMIZERS)}, got {self.optimizer!r}: of no other batch sizes "
                "before the first step are published; measure the run instead, with watch()"
            )

    @property
    def model(self) -> LanguageModel:
        """The same for the laws.

        Raises:
            DomainError: For tokens that are no number of them.
        """
        tokens = TOKENS_PER_PARAMETER * (self.params or 0) if self.tokens is None else self.tokens
        return LanguageModel(tokens, is_mixture=self.is_mixture)


def recommend(planned: PlannedModel, asked: Question) -> Recommendation:
    """The batch of least expected cost, in examples.

    Args:
        planned: What is known of the training.
        asked: What a step is worth; limits need a run.

    Raises:
        DomainError: For a price or limits that only a run can tell, or out of range.
    """
    _refuse_what_needs_a_run(asked)
    model, length = planned.model, planned.sequence_length
    per_step = None if asked.examples_per_step is None else asked.examples_per_step * length
    preference = SPLIT if asked.preference is None else asked.preference
    found = advise(model, tokens_per_step=per_step, preference=preference)
    batch, critical = _in_examples(found.batch, length), _in_examples(found.critical, length)
    to_batch = round_batch(batch.value)
    ramp = wording.ramp(found)
    price = critical.value if per_step is None else asked.examples_per_step or 0.0
    return Recommendation(
        decision="start",
        headline=f"Start with {to_batch:,}",
        reason=wording.because(model, found, are_tokens_assumed=planned.tokens is None),
        effect=wording.risk(found),
        unit="tokens",
        example="token" if length == 1 else "sequence",
        units_per_example=float(length),
        recommended_batch_size=to_batch,
        interval=batch,
        critical_batch=critical,
        exchange_rate=ExchangeRate(
            price,
            "preference" if per_step is None else "examples_per_step",
            wording.priced(per_step, preference),
        ),
        preference=preference if per_step is None else None,
        otherwise=_otherwise(model, length) if per_step is None and preference == SPLIT else (),
        warnings=_cautions(model, found),
        next_step=wording.TO_CHANGE,
        schedule_missing=f"{ramp[0].upper()}{ramp[1:]}.",
    )


def _refuse_what_needs_a_run(asked: Question) -> None:
    other = [name for name in asked.said if name not in ("preference", "examples_per_step")]
    if other:
        raise DomainError(
            f"{other[0]} needs a run that has begun: before it say examples_per_step or preference, and ask it then"
        )


def _in_examples(found: theory.PriorInterval, length: int) -> Interval:
    return Interval(found.value / length, found.low / length, found.high / length)


def _otherwise(model: LanguageModel, length: int) -> tuple[AtPreference, ...]:
    return tuple(
        AtPreference(value, round_batch(advise(model, preference=value).batch.value / length), f"where {what} matters")
        for value, what in ((wording.MONEY, "money"), (wording.TIME, "time"))
    )


def _cautions(model: LanguageModel, found: theory.Advice) -> tuple[Caution, ...]:
    rate = Caution("rate_not_known", wording.rate(found))
    beyond = (Caution("extrapolated", wording.EXTRAPOLATED),) if found.is_extrapolated else ()
    return (*beyond, rate)
