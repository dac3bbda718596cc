"""What was seen in the database as families of Prometheus' metrics. Names and labels: docs/metrics.md."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from noisescale_server.process.own_metrics import ProcessMetrics, build_info
from noisescale_server.services.telemetry import Snapshot
from noisescale_server.storage.telemetry import LiveRun

OF_A_RUN: Final = ("run",)
"""Label of every figure of a run; project, task and name stand in noisescale_run_info alone, to be joined by it."""

Figure = Callable[[LiveRun], float | None]

FIGURES: Final[tuple[tuple[str, str, Figure], ...]] = (
    ("noise_scale_examples", "Noise scale by the latest window", lambda run: run.noise_scale_value),
    ("noise_scale_low_examples", "Lower end of its 95 % interval", lambda run: run.noise_scale_low),
    ("noise_scale_high_examples", "Upper end of its 95 % interval", lambda run: run.noise_scale_high),
    ("noise_scale_resolved", "1 where the noise scale is resolved", lambda run: run.noise_scale_state == "resolved"),
    ("batch_size_examples", "Global batch in use", lambda run: run.latest_global_batch),
    ("recommended_batch_size_examples", "Batch of least expected cost", lambda run: run.decision_batch_size),
    ("recommendation_odds_ratio", "That the recommended batch is cheaper", lambda run: run.decision_probability),
    ("expected_saving_ratio", "Share of the cost that it is expected to save", lambda run: run.decision_saving),
    ("example_efficiency_ratio", "Progress of an example, relative to the best", lambda run: run.example_efficiency),
    ("step", "Newest optimizer step", lambda run: run.latest_step),
    ("last_heard_timestamp_seconds", "When data last came", lambda run: run.updated_at.timestamp()),
    ("diverged", "1 while loss or gradients are not finite", lambda run: run.is_broken),
)


class Scrape:
    """Everything that one scrape answers.

    Args:
        process: What the server has counted.
        seen: What was seen in the database; None where it does not answer.
    """

    def __init__(self, process: ProcessMetrics, seen: Snapshot | None) -> None:
        self._process, self._seen = process, seen

    def collect(self) -> Iterator[Metric]:
        """Family by family."""
        yield InfoMetricFamily("noisescale_build", "What is running", value=build_info())
        yield from self._process.collect()
        yield GaugeMetricFamily("noisescale_database_up", "1 where the database answers", float(self._seen is not None))
        if self._seen is not None:
            yield from _of_the_database(self._seen)
            yield from _of_runs(self._seen.runs)


def _of_the_database(seen: Snapshot) -> Iterator[Metric]:
    yield GaugeMetricFamily("noisescale_database_answer_seconds", "That it took for this scrape", seen.seconds)
    waiting = GaugeMetricFamily("noisescale_waiting_runs", "Runs that wait for the server's own work", labels=["work"])
    waiting.add_metric(["window"], seen.waiting.windows)
    waiting.add_metric(["decision"], seen.waiting.decisions)
    yield waiting
    shown = "Runs that are heard of, in projects of this key: the newest, up to the limit"
    yield GaugeMetricFamily("noisescale_live_runs", shown, len(seen.runs))
    yield GaugeMetricFamily(
        "noisescale_live_runs_left_out", "1 where there are more than the limit", float(seen.has_more)
    )


def _of_runs(runs: list[LiveRun]) -> Iterator[Metric]:
    labels = [(run, [str(run.id)]) for run in runs]
    info = InfoMetricFamily("noisescale_run", "What a run is called", labels=[*OF_A_RUN])
    for run, values in labels:
        called = {"project": run.project, "task": run.task, "name": run.name, "unit": run.unit}
        info.add_metric(values, {**called, "example": run.example or "", "optimizer": run.optimizer or ""})
    yield info
    for name, meaning, figure in FIGURES:
        family = GaugeMetricFamily(f"noisescale_run_{name}", meaning, labels=[*OF_A_RUN])
        for run, values in labels:
            value = figure(run)
            if value is not None:
                family.add_metric(values, float(value))
        yield family
    decided = GaugeMetricFamily("noisescale_run_decision", "1 for the word of it", labels=[*OF_A_RUN, "decision"])
    for run, values in labels:
        decided.add_metric([*values, run.decision or "insufficient_evidence"], 1.0)
    yield decided
