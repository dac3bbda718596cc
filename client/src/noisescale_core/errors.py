"""Every error that noisescale raises.

NoiseScaleError
├── ConfigError             wrong arguments to init() or watch(), before the first step
├── UnsupportedLayerError   a layer whose per-example norms have no formula here
├── EstimationError         the inputs cannot determine the answer
├── DomainError             a value outside the range in which a formula of the theory holds
└── TransportError          stays inside the uploader thread: counted, logged, never raised into training
"""


class NoiseScaleError(Exception):
    """Root of every error that noisescale raises."""


class ConfigError(NoiseScaleError, ValueError):
    """Wrong arguments to a constructor, to `init()` or to `watch()`."""


class UnsupportedLayerError(NoiseScaleError):
    """A layer that cannot be measured; the message says never, not yet, or what to use instead."""


class EstimationError(NoiseScaleError, ValueError):
    """The inputs cannot determine |G|² and tr Σ."""


class DomainError(NoiseScaleError, ValueError):
    """A value outside the range in which a formula of the theory holds; names the field, the value and the way out."""


class TransportError(NoiseScaleError):
    """A batch that could not be delivered."""
