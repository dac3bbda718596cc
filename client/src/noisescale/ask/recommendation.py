"""A recommendation as a caller of the SDK gets it: the answer, who gave it, and a short text when printed."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from noisescale.ask import printed
from noisescale.shown.card import recommendation_card
from noisescale_core.advice import answer as core

Source = Literal["server", "job", "published", "nowhere"]

Writer = Callable[[str], str]
"""From a trainer's name to the schedule in its words, or to a sentence why there is none."""

NO_WRITER = "a schedule needs a recommendation first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation(core.Recommendation):
    """Which batch size now, why, how sure, and what it would change; print it.

    Its fields are those of `noisescale_core.advice.answer.Recommendation` and of `docs/rest.md`, and these:

    Attributes:
        source: "server"; "job", computed here; "published", from published sweeps alone; "nowhere": there is no answer,
            and `reason` says why.
        note: Why the server did not answer, where it did not.
        missing: What this answer does not hold, and why.
        course: Noise scales along the run as this job has measured it, oldest first; None where it knew none.
        said: The JSON of a server, also what this version knows nothing of; None where none answered.
        writer: Writes the schedule in a trainer's words.
    """

    source: Source = "nowhere"
    note: str | None = None
    missing: tuple[str, ...] = ()
    course: tuple[float | None, ...] = field(default=(), repr=False, compare=False)
    said: Mapping[str, object] | None = field(default=None, repr=False, compare=False)
    writer: Writer | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, found: core.Recommendation, **more: Any) -> "Recommendation":
        """The answer with who gave it.

        Args:
            found: The answer.
            more: Fields of this class.
        """
        return cls(**{one.name: getattr(found, one.name) for one in fields(core.Recommendation)}, **more)

    @property
    def answer(self) -> Mapping[str, object]:
        """Everything that was said, by the names of `docs/rest.md`; read anew at each call."""
        if self.said is not None:
            return self.said
        own = {one.name for one in fields(core.Recommendation)}
        return {name: value for name, value in asdict(self).items() if name in own}

    def flags(self, trainer: str) -> str:
        """The schedule in a trainer's words; a comment that says why, where there is none.

        Args:
            trainer: "megatron", "torchtitan", "nanogpt" or "huggingface".
        """
        if self.writer is None:
            return f"# no flags for {trainer}: {self.schedule_missing or self.reason or NO_WRITER}\n"
        return self.writer(trainer)

    def __str__(self) -> str:
        return printed.as_text(self)

    def _repr_html_(self) -> str:
        """The recommendation as a notebook shows it."""
        return recommendation_card(self, printed.parts(self))
