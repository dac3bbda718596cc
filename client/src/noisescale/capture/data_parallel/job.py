"""What a data-parallel job tells the capture: how gradients are averaged, when, and where they can be seen."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_sums import RankSums

SeeGradient = Callable[[Tensor], None]


class RemovableHandle(Protocol):
    """What PyTorch returns for a hook."""

    def remove(self) -> None:
        """Take the hook off."""


class DataParallelJob(Protocol):
    """One way of spreading a batch over processes.

    Attributes:
        name: For the run record: "none", "ddp" or "fsdp".
        num_ranks: R, ranks that see different data.
        is_first: This rank is the one that sends.
        has_shards: Each rank holds a part of `p.grad` only, so |ḡ|² has to be summed over ranks as well.
        is_compressed: Gradients lose digits on their way between the ranks.
        is_blind: In the next backward gradients are averaged before they can be seen.
        is_by_rank: Only each rank's own gradient is looked at, in every synchronised backward.
        notes: What is worth a line in the log, as sentences.
        sums: Over all ranks of the job; None where there is one rank.
    """

    name: str
    num_ranks: int
    is_first: bool
    has_shards: bool
    is_compressed: bool
    is_blind: bool
    is_by_rank: bool
    notes: Sequence[str]
    sums: "RankSums | None"

    @property
    def averages_over(self) -> float:
        """What a leaf's gradient is divided by on its way into `p.grad`: R, unless the training chose otherwise."""

    def arm(self, hooks: Sequence[SeeGradient]) -> None:
        """Call hooks[i] with each gradient of parameter i from now on, before it is accumulated."""

    def disarm(self) -> None:
        """Take all hooks off."""

    def see_forward(self) -> None:
        """A forward that a backward will follow."""

    def is_synchronising(self) -> bool:
        """Whether the backward that ends now averages the gradients over all ranks; the same on every rank.

        To be called once for each backward.
        """

    def own_sq_norms(self) -> Tensor | None:
        """|a|² of each parameter's accumulated gradient on this rank, [P] fp64; None where it was not looked at.

        To be called before the callbacks that others have queued for the end of the backward, since averaged gradients
        overwrite it there; where ranks hold shards, behind these.
        """

    def averaging_values(self) -> Tensor | None:
        """What `AveragingCheck.values()` gives for this backward, at its very end; None where nothing is checked."""

    def local_gradients(self) -> list[Tensor | None]:
        """The part of each `p.grad` that lies on this rank."""

    def shares(self) -> Sequence[float]:
        """By what the squared norm of each such part counts in a sum over ranks, as several may hold the same."""


def leaf_handles(parameters: Sequence[Tensor], hooks: Sequence[SeeGradient]) -> list[RemovableHandle]:
    """Hook each parameter that is still trained: torch refuses a hook on one that was frozen since, with an error."""
    return [p.register_hook(hook) for p, hook in zip(parameters, hooks, strict=True) if p.requires_grad]


class OneProcess:
    """A model that no other process trains with; see `DataParallelJob` for the attributes.

    Args:
        parameters: Those watched.
        notes: What is worth a line in the log.
    """

    name = "none"
    num_ranks = 1
    is_first = True
    has_shards = False
    is_compressed = False
    is_blind = False
    is_by_rank = False
    averages_over = 1.0
    sums: "RankSums | None" = None

    def __init__(self, parameters: Sequence[Tensor], notes: Sequence[str] = ()) -> None:
        self.notes: Sequence[str] = notes
        self._parameters = parameters
        self._handles: list[RemovableHandle] = []

    def arm(self, hooks: Sequence[SeeGradient]) -> None:
        """Hook the parameters themselves."""
        self._handles = leaf_handles(self._parameters, hooks)

    def disarm(self) -> None:
        """Take all hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def see_forward(self) -> None:
        """Of no interest."""

    def is_synchronising(self) -> bool:
        """There is nobody else."""
        return False

    def own_sq_norms(self) -> Tensor | None:
        """None: one process has nobody to average with."""
        return None

    def averaging_values(self) -> Tensor | None:
        """None: one process has nobody to average with."""
        return None

    def local_gradients(self) -> list[Tensor | None]:
        """The whole of them."""
        return [p.grad for p in self._parameters]

    def shares(self) -> Sequence[float]:
        """Each counts."""
        return [1.0] * len(self._parameters)
