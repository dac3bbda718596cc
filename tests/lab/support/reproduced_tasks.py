"""Results of tasks that were not run."""

from noisescale_lab.reproduce.claim.critical_fit import CriticalFit
from noisescale_lab.reproduce.claim.noise_over_run import NoiseWindow
from noisescale_lab.reproduce.claim.task_result import AdaptiveBatch, TargetResult, TaskResult, TunedRun


def make_result(
    task: str,
    *,
    critical_batch: float = 40.0,
    noise_scale: float = 40.0,
    group: str = "listed",
    exclusion: str | None = None,
    seed: int = 0,
    adaptive: AdaptiveBatch | None = None,
) -> TaskResult:
    fit = CriticalFit(20.0, critical_batch, critical_batch / 2, critical_batch * 2, 0.05, 4)
    targets = tuple(
        TargetResult(
            target=target,
            points=((16, 70.0), (64, 32.5), (256, 23.1)),
            fit=fit,
            exclusion=exclusion if target == 0.5 else None,
            near_critical=noise_scale,
            near_interval=(noise_scale / 1.2, noise_scale * 1.2),
            ideal_steps=noise_scale,
            all_batches=noise_scale * 2,
            exact_near_critical=noise_scale,
        )
        for target in (0.5, 0.1)
    )
    windows = tuple(
        NoiseWindow(first, 10, value, value / 2, value * 2, value)
        for first, value in ((0, noise_scale / 2), (10, noise_scale), (20, noise_scale), (30, noise_scale * 2))
    )
    curve = ((0, 2.0), (10, 1.0), (20, 0.5), (40, 0.1))
    runs = tuple(TunedRun(batch, batch / 100, (20.0, 40.0), curve, 4, windows, windows) for batch in (16, 32, 64, 256))
    return TaskResult(task, "examples", 1, "min", "sgd", group, "quick", seed, 4, 48, 1.5, runs, targets, adaptive)
