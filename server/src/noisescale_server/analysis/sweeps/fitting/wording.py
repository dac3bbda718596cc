"""Why a sweep was refused, in sentences with the numbers and the way out."""

from noisescale_server.analysis.sweeps.fitting.slope import Slope


def batch_sizes(count: int) -> str:
    """So many batch sizes, in words."""
    return f"{count} batch {'size' if count == 1 else 'sizes'}"


def too_few(num_known: int, num_all: int, fewest: int) -> str:
    """Fewer batch sizes than the curve needs."""
    return (
        f"{num_known} of {batch_sizes(num_all)} reached the target, later than at their first evaluation, and a curve "
        f"needs {fewest}: add batch sizes, evaluate earlier, or choose a target that more runs reached."
    )


def repeats_disagree(batch_size: float, worst: float, usual: float) -> str:
    """Repeats of one batch size that are not alike."""
    return (
        f"Repeats of batch size {batch_size:g} scatter by {worst:.2g} in log steps (1 sd), those of the others by "
        f"{usual:.2g}: a run there failed or took another road. Leave it out, or repeat that batch size."
    )


def steps_rise(slope: Slope) -> str:
    """More steps at larger batches."""
    return (
        f"Steps rise with the batch size, as its power {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}], where "
        "the theory allows -1 to 0: larger batches were tuned worse, or the target suits small batches."
    )


def examples_fall(slope: Slope) -> str:
    """Fewer examples at larger batches."""
    return (
        f"Steps fall with the batch size as its power {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}], faster "
        "than -1, so larger batches needed fewer examples: small batches were tuned worse, or the counts are in "
        "another unit than examples."
    )


def misfit(rms: float, repeats: float) -> str:
    """A curve that is not the data's."""
    return (
        f"The curve misses the batch sizes by {rms:.0%} (rms) where repeats of one batch size differ by {repeats:.0%}: "
        "batch sizes were not tuned alike, or the target was not reached in the same way."
    )


def turns(*, best: float, smallest: float, rise: float, probability: float) -> str:
    """Examples that rise again at small batches."""
    return (
        f"Examples to the target are fewest at a batch of about {best:,.4g} and {rise:.0%} more at {smallest:,.4g} "
        f"(by chance with probability {probability:.2g}): below it something was not set anew for the smaller batch, "
        "such as β2, weight decay or the floor of a rate."
    )


def without_the_turn() -> str:
    """What the numbers of a turning sweep are of."""
    return "That rise is left out of B_crit, S_min and E_min, which are of the larger batches' curve."


def undetermined(smallest: float, largest: float) -> str:
    """The sentence where B_crit is not known at all."""
    return (
        f"Noise hides whether steps fall with the batch size between {smallest:g} and {largest:g}: repeat runs, or "
        "widen the range."
    )


def all_below(smallest: float, largest: float, *, bound: float) -> str:
    """Only a lower bound of B_crit."""
    return (
        f"Within the noise, steps may go on falling in proportion to the batch size from {smallest:g} to {largest:g} "
        f"and beyond: B_crit is above {bound:,.4g} and has no upper bound. Add larger batch sizes, or repeats."
    )


def all_above(smallest: float, largest: float, *, bound: float) -> str:
    """Only an upper bound of B_crit."""
    return (
        f"Within the noise, steps may be the same at every batch size from {smallest:g} to {largest:g} and below: "
        f"B_crit is below {bound:,.4g} and has no lower bound. Add smaller batch sizes, or repeats."
    )
