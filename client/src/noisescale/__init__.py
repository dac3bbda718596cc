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
    from noisescale.branching.branch import branch
    from noisescale.config import Config
    from noisescale.errors import (
        ConfigError,
        EstimationError,
        NoiseScaleError,
        TransportError,
        UnsupportedLayerError,
    )
    from noisescale.following.follow import follow
    from noisescale.recent_updates import NoiseScale
    from noisescale.recommending.before_a_run import recommend
    from noisescale.recommending.recommendation import Recommendation
    from noisescale.run import Run
    from noisescale.sweeps.sweep import sweep

_MODULES = {
    "init": "noisescale.active_run",
    "watch": "noisescale.active_run",
    "unwatch": "noisescale.active_run",
    "micro_batch": "noisescale.active_run",
    "ignore": "noisescale.active_run",
    "log_gradients": "noisescale.active_run",
    "log_norms": "noisescale.active_run",
    "log_nested_norms": "noisescale.active_run",
    "log_hessian": "noisescale.active_run",
    "log_metrics": "noisescale.active_run",
    "clip_grad_norm_": "noisescale.active_run",
    "noise_scale": "noisescale.active_run",
    "recommendation": "noisescale.active_run",
    "recommend": "noisescale.recommending.before_a_run",
    "finish": "noisescale.active_run",
    "branch": "noisescale.branching.branch",
    "follow": "noisescale.following.follow",
    "sweep": "noisescale.sweeps.sweep",
    "Run": "noisescale.run",
    "NoiseScale": "noisescale.recent_updates",
    "Recommendation": "noisescale.recommending.recommendation",
    "Config": "noisescale.config",
    "NoiseScaleError": "noisescale.errors",
    "ConfigError": "noisescale.errors",
    "UnsupportedLayerError": "noisescale.errors",
    "EstimationError": "noisescale.errors",
    "TransportError": "noisescale.errors",
}

__getattr__, __dir__ = exports(__name__, _MODULES)

__all__ = [
    "Config",
    "ConfigError",
    "EstimationError",
    "NoiseScale",
    "NoiseScaleError",
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
