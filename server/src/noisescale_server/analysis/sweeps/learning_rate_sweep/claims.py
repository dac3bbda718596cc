"""What theory claims of best learning rates, held against the curves through a sweep's.

SGD: in proportion to B below a batch B*, constant above, and B* is the noise scale (McCandlish et al. 2018,
arXiv:1812.06162, eq. 2.6). Adam and RMSprop: as B^α below it, α from 0.5 to 1 (appendix A.2); the sweeps known to us
lie about 0.4 to 0.8.
"""

from dataclasses import dataclass

from noisescale_core.theory.learning_rate import RuleFamily
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.learning_rate_sweep.curves import CurveName
from noisescale_server.analysis.sweeps.learning_rate_sweep.fit import RateFits

CLAIMED_EXPONENT = {RuleFamily.SGD: (1.0, 1.0), RuleFamily.ADAM: (0.4, 0.8)}
NAMES = {RuleFamily.SGD: "SGD", RuleFamily.ADAM: "Adam"}


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and what the sweep says of it.

    Attributes:
        text: The claim.
        estimate: The number that it is about; None where it is about the kind of curve, or too little is known.
        holds: True where the data agree with it, False where they contradict it, None where they cannot tell.
    """

    text: str
    estimate: Estimate | None
    holds: bool | None


def claims(fits: RateFits, family: RuleFamily, critical_batch: Estimate | None) -> tuple[Claim, ...]:
    """The claims about an optimizer's family; none for a family of which nothing is claimed."""
    if family not in CLAIMED_EXPONENT:
        return ()
    found = [_exponent(fits, family), _saturates(fits, family)]
    if family is RuleFamily.SGD and critical_batch is not None:
        found.append(_bends_at(fits, critical_batch))
    return tuple(found)


def _exponent(fits: RateFits, family: RuleFamily) -> Claim:
    low, high = CLAIMED_EXPONENT[family]
    shown = "in proportion to B" if low == high else f"as B^α with α about {low:g} to {high:g}"
    text = f"{NAMES[family]}: far below B_crit the best learning rate goes {shown}."
    curve = fits.of(CurveName.SATURATING)
    if curve is None or not curve.has_support:
        return Claim(text, None, None)
    exponent = curve.estimates["exponent"]
    return Claim(text, exponent, _meets(exponent, low, high))


def _saturates(fits: RateFits, family: RuleFamily) -> Claim:
    text = f"{NAMES[family]}: above B_crit the best learning rate grows no further."
    kinds = {one.curve.name for one in fits.curves if one.has_support}
    grows = bool(kinds & {CurveName.POWER, CurveName.SQUARE_ROOT})
    stops = bool(kinds & {CurveName.SATURATING, CurveName.SATURATING_SGD, CurveName.SURGE})
    return Claim(text, None, None if grows == stops else stops)


def _bends_at(fits: RateFits, critical_batch: Estimate) -> Claim:
    text = "SGD: the batch B* at which the learning rate bends is the critical batch."
    curve = fits.of(CurveName.SATURATING_SGD)
    if curve is None or not curve.has_support:
        return Claim(text, None, None)
    bend = curve.estimates["batch_scale"]
    low = critical_batch.value if critical_batch.low is None else critical_batch.low
    high = critical_batch.value if critical_batch.high is None else critical_batch.high
    return Claim(text, bend, _meets(bend, low, high))


def _meets(estimate: Estimate, low: float, high: float) -> bool | None:
    """Whether the interval meets the claimed range; None where the interval is open on both sides, so says nothing."""
    if estimate.low is None and estimate.high is None:
        return None
    is_above = estimate.low is not None and estimate.low > high
    is_below = estimate.high is not None and estimate.high < low
    return not (is_above or is_below)
