import pytest

from noisescale_lab.reproduce.claim.measure_task import adaptive_batch
from noisescale_lab.reproduce.claim.noise_over_run import NoiseWindow
from noisescale_lab.reproduce.claim.task_result import TunedRun
from noisescale_lab.reproduce.registry import ALL


def run(*noise_scales: float) -> TunedRun:
    """A tuned run of digits_softmax at 64 examples, with windows of twelve steps."""
    spans = tuple(NoiseWindow(12 * place, 12, value, value, value, value) for place, value in enumerate(noise_scales))
    return TunedRun(64, 4.5, (20.0, 35.0, 48.0), ((0, 2.3), (48, 0.2)), 4, spans, spans)


def test_a_noise_scale_that_stays_at_the_price_gives_the_constant_run_at_its_own_cost() -> None:
    found = adaptive_batch(ALL["digits_softmax"](), run(64, 64, 64, 64), 64.0, range(4))

    assert found is not None
    assert (found.smallest, found.largest) == (64, 64)
    assert found.foreseen == pytest.approx(1)
    assert found.measured == pytest.approx(1, rel=0.3)


def test_a_noise_scale_that_grows_lets_the_batch_grow_with_its_root() -> None:
    found = adaptive_batch(ALL["digits_softmax"](), run(4, 16, 64, 256), 64.0, range(4))

    assert found is not None
    assert (found.smallest, found.largest) == (16, 128)
    assert found.foreseen < 1


def test_a_run_without_a_noise_scale_has_nothing_to_follow() -> None:
    assert adaptive_batch(ALL["digits_softmax"](), run(), 64.0, range(2)) is None
