"""Gradient noise scale inside your training job.

    import noisescale

    noisescale.watch(model, optimizer)
    noisescale.log_gradients(loss=loss)   # before clipping and optimizer.step()

Names load on first use: importing this package loads neither torch nor httpx.
"""

from typing import TYPE_CHECKING

from noisescale.lazy import exports
from noisescale.version import __version__

if TYPE_CHECKING:
    from noisescale.active_run import (
        clip_grad_norm_,
        finish,
        ignore,
        init,
        learning_rate,
        log_gradients,
        log_hessian,
        log_metrics,
        log_nested_norms,
        log_norms,
        micro_batch,
        noise_scale,
        recommendation,
        unwatch,
        watch,
    )
    from noisescale.ask.before_a_run import recommend
    from noisescale.ask.recommendation import Recommendation
    from noisescale.config import Config
    from noisescale.run import Run
    from noisescale.window.recent_updates import NoiseScale
    from noisescale_core.advice.rate_verdict import RateVerdict
    from noisescale_core.errors import (
        ConfigError,
        EstimationError,
        NoiseScaleError,
        TransportError,
        UnsupportedLayerError,
    )
    from noisescale_lab.branch.branch import branch
    from noisescale_lab.follow.batches import Batches
    from noisescale_lab.follow.follow import follow
    from noisescale_lab.sweep.sweep import sweep

_FUNCTIONS = (
    "init watch unwatch micro_batch ignore log_gradients log_norms log_nested_norms log_hessian log_metrics "
    "clip_grad_norm_ noise_scale recommendation learning_rate finish"
)
_ERRORS = "NoiseScaleError ConfigError UnsupportedLayerError EstimationError TransportError"
_MODULES = {
    **dict.fromkeys(_FUNCTIONS.split(), "noisescale.active_run"),
    **dict.fromkeys(_ERRORS.split(), "noisescale_core.errors"),
    "recommend": "noisescale.ask.before_a_run",
    "branch": "noisescale_lab.branch.branch",
    "Batches": "noisescale_lab.follow.batches",
    "follow": "noisescale_lab.follow.follow",
    "sweep": "noisescale_lab.sweep.sweep",
    "Run": "noisescale.run",
    "NoiseScale": "noisescale.window.recent_updates",
    "RateVerdict": "noisescale_core.advice.rate_verdict",
    "Recommendation": "noisescale.ask.recommendation",
    "Config": "noisescale.config",
}

__getattr__, __dir__ = exports(__name__, _MODULES)

__all__ = [
    "Batches",
    "Config",
    "ConfigError",
    "EstimationError",
    "NoiseScale",
    "NoiseScaleError",
    "RateVerdict",
    "Recommendation",
    "Run",
    "TransportError",
    "UnsupportedLayerError",
    "__version__",
    "branch",
    "clip_grad_norm_",
    "finish",
    "follow",
    "ignore",
    "init",
    "learning_rate",
    "log_gradients",
    "log_hessian",
    "log_metrics",
    "log_nested_norms",
    "log_norms",
    "micro_batch",
    "noise_scale",
    "recommend",
    "recommendation",
    "sweep",
    "unwatch",
    "watch",
]
