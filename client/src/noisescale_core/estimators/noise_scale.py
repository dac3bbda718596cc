"""Unbiased |G|² and tr Σ of one optimizer step, from squared gradient norms.

All three estimators rest on E|G_B|² = |G|² + tr Σ / B (McCandlish et al. 2018, arXiv:1812.06162, appendix A.1).
Both terms are unbiased, their ratio is not: add the terms over many steps and divide last. A term may be negative.
"""

from typing import NamedTuple

from noisescale_core.errors import EstimationError


# a tuple: a frozen dataclass costs the training thread of a step that is logged three times as much
class Terms(NamedTuple):
    """The two terms of B_simple = tr Σ / |G|² for one step.

    Attributes:
        trace_cov: Estimate of tr Σ, in squared gradient × examples.
        grad_sq_norm: Estimate of |G|², in squared gradient.
    """

    trace_cov: float
    grad_sq_norm: float


def two_batch(*, small_sq_norm: float, big_sq_norm: float, small_batch_size: float, big_batch_size: float) -> Terms:
    """Terms from squared gradient norms at two batch sizes.

    Args:
        small_sq_norm: Mean of |G_B|² over all small batches inside the big one (mean of squares, not square of a mean).
        big_sq_norm: |G_B|² of the big batch's mean gradient, with the same loss scaling as the small ones.
        small_batch_size: Examples per small batch; 1 for per-example norms.
        big_batch_size: Examples in the big batch.

    Raises:
        EstimationError: Unless 0 < small_batch_size < big_batch_size.

    Source: McCandlish et al. 2018, arXiv:1812.06162, appendix A.1.
    """
    check_two_batches(small_batch_size, big_batch_size)
    return Terms(*solve_two_batches(small_sq_norm, big_sq_norm, small_batch_size, big_batch_size))


def check_two_batches(small_batch_size: float, big_batch_size: float) -> None:
    """Refuse sizes that do not tell noise from gradient.

    Raises:
        EstimationError: Unless 0 < small_batch_size < big_batch_size.
    """
    if not 0 < small_batch_size < big_batch_size:
        raise EstimationError(
            f"big_batch_size must exceed small_batch_size > 0, got {big_batch_size:g} and {small_batch_size:g}: "
            "use gradient accumulation or more ranks"
        )


def solve_two_batches(
    small_sq_norm: float, big_sq_norm: float, small_batch_size: float, big_batch_size: float
) -> tuple[float, float]:
    """Both terms, tr Σ first, as in `two_batch`, of checked sizes: arithmetic alone, so columns do, too."""
    grad_sq_norm = (big_batch_size * big_sq_norm - small_batch_size * small_sq_norm) / (
        big_batch_size - small_batch_size
    )
    trace_cov = (small_sq_norm - big_sq_norm) / (1 / small_batch_size - 1 / big_batch_size)
    return trace_cov, grad_sq_norm


def from_groups(*, mean_small_sq_norm: float, big_sq_norm: float, num_groups: int, batch_size: float) -> Terms:
    """Terms from K equal groups (micro-batches or ranks) of one step.

    Args:
        mean_small_sq_norm: Mean over the groups of |g_k|², g_k the mean gradient of group k.
        big_sq_norm: |ḡ|², ḡ the mean of the g_k.
        num_groups: K.
        batch_size: Examples in all groups together, B = K b.

    Raises:
        EstimationError: With fewer than two groups or without examples.

    Source: `two_batch` with B_small = B / K; it equals the mean over all pairs of groups.
    """
    check_groups(num_groups, batch_size)
    trace_cov = batch_size / (num_groups - 1) * (mean_small_sq_norm - big_sq_norm)
    return Terms(trace_cov=trace_cov, grad_sq_norm=big_sq_norm - trace_cov / batch_size)


def from_unequal_groups(*, weighted_sq_norm: float, big_sq_norm: float, num_groups: int, batch_size: float) -> Terms:
    """Terms from K groups of different sizes n_k, with Cov(g_k) = Σ / n_k.

    Args:
        weighted_sq_norm: W = Σ p_k |g_k|² with p_k = n_k / N, g_k the mean gradient of group k.
        big_sq_norm: |Σ p_k g_k|², the squared norm of the gradient over all N examples.
        num_groups: K.
        batch_size: N = Σ n_k, examples.

    Raises:
        EstimationError: With fewer than two groups or without examples.

    Source: E W = |G|² + K tr Σ / N and E|Σ p_k g_k|² = |G|² + tr Σ / N, solved for both; `from_groups` at equal sizes.
    """
    check_groups(num_groups, batch_size)
    return Terms(*solve_unequal_groups(weighted_sq_norm, big_sq_norm, num_groups, batch_size))


def solve_unequal_groups(
    weighted_sq_norm: float, big_sq_norm: float, num_groups: float, batch_size: float
) -> tuple[float, float]:
    """Both terms, tr Σ first, as in `from_unequal_groups`, of checked sizes: arithmetic alone."""
    trace_cov = batch_size * (weighted_sq_norm - big_sq_norm) / (num_groups - 1)
    return trace_cov, big_sq_norm - trace_cov / batch_size


def solve_equally_weighted_groups(
    mean_sq_norm: float, big_sq_norm: float, num_groups: float, mean_inverse_size: float
) -> tuple[float, float]:
    """Both terms, tr Σ first, from K groups of different sizes n_k whose mean gradients are averaged with equal weight.

    Such a loop's gradient is not the mean over the examples: small groups count too much. Sizes are checked before.

    Args:
        mean_sq_norm: Mean of |g_k|², g_k the mean gradient of group k.
        big_sq_norm: |Σ g_k / K|².
        num_groups: K, at least 2.
        mean_inverse_size: Mean of 1 / n_k, in 1 / examples.

    Source: E|g_k|² = |G|² + tr Σ / n_k averaged over k, and E|Σ g_k / K|² = |G|² + tr Σ mean(1 / n_k) / K, solved for
        both; `from_groups` at equal sizes.
    """
    spread = (mean_sq_norm - big_sq_norm) * num_groups / (num_groups - 1)
    return spread / mean_inverse_size, mean_sq_norm - spread


def robust_grad_sq_norm(
    *, sum_sq_norm: float, sum_of_sq_norms: float, batch_size: float, sum_of_sq_sizes: float
) -> float:
    """|G|² from groups whose noise may have any covariance, not only Σ / n_k.

    Args:
        sum_sq_norm: |Σ s_k|², s_k = n_k g_k the sum of the gradients of group k's examples.
        sum_of_sq_norms: Σ |s_k|².
        batch_size: N = Σ n_k, examples.
        sum_of_sq_sizes: Σ n_k².

    Raises:
        EstimationError: Unless at least two groups hold examples.

    Source: only products of different groups are left, and E s_i · s_k = n_i n_k |G|² needs no more than independent
        groups with E s_k = n_k G.
    """
    pairs = batch_size * batch_size - sum_of_sq_sizes
    if not pairs > 0:
        raise EstimationError(
            f"two groups must hold examples, got batch_size {batch_size:g} and sum_of_sq_sizes {sum_of_sq_sizes:g}: "
            "use gradient accumulation or more ranks"
        )
    return (sum_sq_norm - sum_of_sq_norms) / pairs


def check_groups(num_groups: int, batch_size: float) -> None:
    """Refuse a step whose groups cannot separate signal from noise.

    Raises:
        EstimationError: With fewer than two groups or without examples.
    """
    if num_groups < 2:
        raise EstimationError(
            f"num_groups must be at least 2, got {num_groups}: use gradient accumulation or more ranks"
        )
    if not batch_size > 0:
        raise EstimationError(f"batch_size must be positive, got {batch_size:g}: count the examples of the step")
