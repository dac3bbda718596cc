from noisescale.ask.before_a_run import recommend as recommend
from noisescale.ask.recommendation import Recommendation as Recommendation
from noisescale.config import Config as Config
from noisescale.options import (
    Arithmetic as Arithmetic,
)
from noisescale.options import (
    Delivery as Delivery,
)
from noisescale.options import (
    Loss as Loss,
)
from noisescale.options import (
    Machine as Machine,
)
from noisescale.options import (
    Units as Units,
)
from noisescale.run.active_run import (
    clip_grad_norm_ as clip_grad_norm_,
)
from noisescale.run.active_run import (
    finish as finish,
)
from noisescale.run.active_run import (
    ignore as ignore,
)
from noisescale.run.active_run import (
    init as init,
)
from noisescale.run.active_run import (
    learning_rate as learning_rate,
)
from noisescale.run.active_run import (
    log_gradients as log_gradients,
)
from noisescale.run.active_run import (
    log_hessian as log_hessian,
)
from noisescale.run.active_run import (
    log_metrics as log_metrics,
)
from noisescale.run.active_run import (
    log_nested_norms as log_nested_norms,
)
from noisescale.run.active_run import (
    log_norms as log_norms,
)
from noisescale.run.active_run import (
    micro_batch as micro_batch,
)
from noisescale.run.active_run import (
    noise_scale as noise_scale,
)
from noisescale.run.active_run import (
    recommendation as recommendation,
)
from noisescale.run.active_run import (
    unwatch as unwatch,
)
from noisescale.run.active_run import (
    watch as watch,
)
from noisescale.run.run import Run as Run
from noisescale.version import __version__ as __version__
from noisescale.window.recent_updates import NoiseScale as NoiseScale
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict as RateVerdict
from noisescale_core.errors import (
    ConfigError as ConfigError,
)
from noisescale_core.errors import (
    EstimationError as EstimationError,
)
from noisescale_core.errors import (
    NoiseScaleError as NoiseScaleError,
)
from noisescale_core.errors import (
    TransportError as TransportError,
)
from noisescale_core.errors import (
    UnsupportedLayerError as UnsupportedLayerError,
)
from noisescale_lab.branch.branch import Checkpoint as Checkpoint
from noisescale_lab.branch.branch import branch as branch
from noisescale_lab.branch.rate_range import RateRange as RateRange
from noisescale_lab.branch.rate_range import learning_rate_range as learning_rate_range
from noisescale_lab.follow.batches import Batches as Batches
from noisescale_lab.follow.follow import follow as follow
from noisescale_lab.sweep.server import Labels as Labels
from noisescale_lab.sweep.sweep import sweep as sweep
