"""Logged steps on their way: from the device, and through the sums over ranks of a data-parallel job."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic

from torch import Tensor

from noisescale.capture.kinds.kind import Kind
from noisescale.capture.path.promise import NAME as PROMISE
from noisescale.capture.sums.device_values import DeviceValues, HeldNorms
from noisescale.capture.sums.step_norms import StepNorms, StepSizes
from noisescale.capture.values.sent_step import SentStep, Tag
from noisescale.capture.values.step_sums import ArrivedNumbers, sums_of_process, sums_over_ranks
from noisescale_core.estimators.dual_norm_noise_scale import Bracket
from noisescale_core.estimators.neighbouring_steps import StepDistances
from noisescale_core.estimators.noise_scale import Terms

if TYPE_CHECKING:
    from noisescale.capture.hooks.exchange import RankExchange

# The norms of a step, from the numbers that have arrived on the host.


def read_step(sent: SentStep[Tag], values: Sequence[float], kinds: Mapping[str, Kind]) -> tuple[Tag, StepNorms]:
    """The norms of a step from the numbers that have arrived.

    Undoes what scales both norms: a loss summed over N examples N², a loss scaler S².

    Args:
        sent: What lies where.
        values: The numbers.
        kinds: Turn their own numbers into terms.
    """
    reader = ArrivedNumbers(values)
    state, ranks = sent.state, sent.over_ranks
    found = sums_of_process(sent, reader) if ranks is None else sums_over_ranks(ranks, sent, reader)
    sizes = found.sizes
    kind_values = {name: reader.take(length) for name, length in sent.kind_lengths.items()}
    promise = kind_values.pop(PROMISE, None)
    kind_terms: Mapping[str, Terms] = {}
    scale = reader.take(1)[0] if sent.has_scale else 1.0
    has_other_values = sent.has_other_values and reader.take(1)[0] > 0
    adds_up = found.adds_up and not has_other_values
    half_sq_distances = None if sent.num_distances is None else reader.take(sent.num_distances)
    loss = reader.take(1)[0] if sent.has_device_loss else sent.loss
    weighted, contributions, big, rank = found.weighted, found.contributions, found.big, found.rank
    if sizes.num_small_batches < 2 or sizes.batch_size is None or not adds_up:
        weighted, contributions, big, kind_values, rank, promise = (), (), (), {}, None, None
    per_example = sizes.batch_size / found.averages_over if state.is_summed_loss and sizes.batch_size else 1.0
    if per_example != 1.0 or scale != 1.0:
        factor = (per_example * scale) ** 2
        big_factor = per_example**2 if state.is_unscaled and not found.is_big_early else factor
        weighted, contributions = [w / factor for w in weighted], [c / factor for c in contributions]
        big = [b / big_factor for b in big]
        rank = None if rank is None else rank / factor
    distances: StepDistances | None = None
    if half_sq_distances is not None and weighted and (sizes.are_equal or state.weighting == "by_size"):
        excess = sum(weighted[column] - big[column] for column in sent.distance_columns)
        distances = StepDistances(
            [distance / per_example**2 for distance in half_sq_distances], excess / (sizes.num_small_batches - 1)
        )
    if kind_values:
        kind_terms = _terms_of_kinds(kinds, kind_values, sizes, per_example * scale)
    return sent.tag, StepNorms(
        sizes,
        weighted,
        big,
        loss,
        contributions,
        weighting=state.weighting,
        adds_up=adds_up,
        is_partial=found.is_partial,
        kind_terms=kind_terms,
        in_metric=None if promise is None or not promise[1] else (promise[0] / (per_example * scale) ** 2, promise[1]),
        kind_brackets=_brackets(kinds, kind_values.keys() - kind_terms.keys()),
        num_ranks=1 if ranks is None else ranks.num_ranks,
        rank_sq_norm=rank,
        is_compressed=ranks is not None and ranks.is_compressed,
        is_averaged=found.is_averaged,
        are_sums_lost=found.are_lost,
        is_coupled=state.is_coupled,
        is_proxy=state.is_proxy,
        has_equal_norms=found.has_equal_norms,
        size_slope=found.size_slope if weighted else None,
        contrasts=found.contrasts if weighted else None,
        distances=distances,
        reason=state.reason,
    )


def _terms_of_kinds(
    kinds: Mapping[str, Kind], kind_values: Mapping[str, Sequence[float]], sizes: StepSizes, scale: float
) -> dict[str, Terms]:
    found = {}
    for name, values in kind_values.items():
        assert sizes.batch_size is not None
        terms = kinds[name].terms(
            values, num_small_batches=sizes.num_small_batches, batch_size=sizes.batch_size, scale=scale
        )
        if terms is not None:
            found[name] = terms
    return found


def _brackets(kinds: Mapping[str, Kind], names: Iterable[str]) -> dict[str, Bracket]:
    found = {name: kinds[name].bracket() for name in names}
    return {name: bracket for name, bracket in found.items() if bracket is not None}


class StepQueue(Generic[Tag]):
    """Steps in the order in which they were logged; nobody waits for them before the end."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._values: DeviceValues[SentStep[Tag]] = DeviceValues()
        self._waiting: deque[tuple[SentStep[Tag], Sequence[float]]] = deque()
        self.exchange: RankExchange | None = None

    def __len__(self) -> int:
        """Steps on their way."""
        return len(self._values) + len(self._waiting)

    @property
    def may_wait(self) -> bool:
        """Whether nothing is on its way, or only what is held until somebody asks or time has passed."""
        return not len(self) or (self.exchange is None and self._values.is_held)

    def is_late(self) -> bool:
        """Whether a step that was held has arrived by now."""
        return self._values.is_late()

    def hurry(self) -> None:
        """Let those steps arrive that are held."""
        self._values.hurry()

    def send(self, sent: SentStep[Tag], values: Tensor | HeldNorms) -> None:
        """Start the journey of a step's vector; returns at once."""
        self._values.send(sent, values)

    def arrived(self) -> list[tuple[Tag, StepNorms]]:
        """Steps whose numbers are all on the host, oldest first; never waits."""
        return self._read(self._values.arrived())

    def drain(self) -> list[tuple[Tag, StepNorms]]:
        """All steps; waits for the device, and for other ranks for a few seconds at most."""
        if self.exchange is not None:
            self.exchange.drain()
        return self._read(self._values.drain())

    def _read(self, arrivals: Sequence[tuple[SentStep[Tag], Sequence[float]]]) -> list[tuple[Tag, StepNorms]]:
        if self.exchange is None:
            return [read_step(sent, values, self._kinds) for sent, values in arrivals]
        self.exchange.advance()
        self._waiting.extend(arrivals)
        steps = []
        while self._waiting and self._waiting[0][0].is_there:
            steps.append(read_step(*self._waiting.popleft(), self._kinds))
        return steps
