"""What a further kind of noise scale is to whoever gathers the small batches of a step."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from torch import Tensor

from noisescale_core.estimators.dual_norm_noise_scale import Bracket
from noisescale_core.estimators.noise_scale import Terms


class Kind(Protocol):
    """One kind of noise scale, measured from the same small batches as kind `simple`.

    The small batches of a step add s_k = p_k g_k to its mean gradient ḡ = Σ s_k, with p_k = n_k / N. Each step gives
    two terms, the numerator and the denominator of the kind's ratio; they are added over steps and divided last.

    The order of calls in a step: `clear`, then for each small batch `add` once or several times and `end_small_batch`,
    then `values`; `terms` when these have reached the host, which may be steps later.

    Attributes:
        name: As in `kind=` of the wire format: "adam", "sign", "spectral".
        is_biased: Some term is biased; `docs/kinds.md` derives by how much.
    """

    name: ClassVar[str]
    is_biased: ClassVar[bool]

    def is_ready(self) -> bool:
        """Whether this step is to be measured, as far as the host knows now; asked before its first backward."""

    def add(self, indices: Sequence[int], gradients: Sequence[Tensor]) -> None:
        """Take parts of one small batch, each parameter at most once per small batch.

        Nothing of a gradient is kept: it may be the memory of `p.grad`.

        Args:
            indices: Of the parameters.
            gradients: Their s_k, exactly as autograd handed them over, before they are added to `p.grad`.
        """

    def end_small_batch(self, size: float) -> None:
        """Close the small batch.

        Args:
            size: n_k, its examples; in any unit, since only shares of the step count.
        """

    def values(self, *, scale: float) -> Tensor:
        """What `terms` needs: 1-D, fp64, on the device of the parameters, without waiting for it.

        Args:
            scale: `p.grad` holds the step's mean gradient times this.
        """

    def terms(
        self, values: Sequence[float], *, num_small_batches: int, batch_size: float, scale: float = 1.0
    ) -> Terms | None:
        """Numerator and denominator of the step; None where it gives no estimate.

        Args:
            values: From `values`, on the host.
            num_small_batches: K, small batches with at least one example.
            batch_size: N, examples of the step.
            scale: What `p.grad` is still multiplied by in the values: what only the device knew, or N of a summed loss.
                It must be undone here rather than in the terms: these may be products of two steps.
        """

    def bracket(self) -> Bracket | None:
        """Between which values the noise scale lies as far as is known, also without terms; None: unknown."""

    def clear(self) -> None:
        """Forget the step: a new one begins."""
