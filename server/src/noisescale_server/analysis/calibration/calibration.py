"""κ = B_crit / B_simple: how far the critical batch lies from the noise scale, as known for one task and optimizer."""

from noisescale_core.advice.evidence.kappa import PUBLISHED_LOG10_SD, UNCALIBRATED, Kappa

__all__ = ["PUBLISHED_LOG10_SD", "UNCALIBRATED", "Kappa"]
