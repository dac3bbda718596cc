import pytest

from noisescale_server.analysis.planner.ramps import LinearRamp, should_double


def test_the_linear_ramp_of_gpt3_in_tokens():
    """32,000 tokens rising to 3.2 million over 12 billion, Brown et al. 2020, appendix B; steps by quadrature."""
    ramp = LinearRamp(32_000, 3_200_000, 12e9)
    num_parts, end = 100_000, 300e9

    by_quadrature = sum(12e9 / num_parts / ramp.batch((i + 0.5) * 12e9 / num_parts) for i in range(num_parts))

    assert ramp.batch(0) == 32_000
    assert ramp.batch(6e9) == pytest.approx(1_616_000)
    assert ramp.batch(1e12) == 3_200_000
    assert ramp.steps(12e9) == pytest.approx(by_quadrature, rel=1e-4)
    assert ramp.steps(end) == pytest.approx(by_quadrature + (end - 12e9) / 3_200_000, rel=1e-4)


def test_a_flat_ramp_is_a_constant_batch():
    assert LinearRamp(64, 64, 1e6).steps(5e5) == pytest.approx(5e5 / 64)


def test_a_batch_doubles_where_the_critical_one_exceeds_twice_of_it():
    """Merrill et al. 2025, arXiv:2505.23971."""
    assert should_double(batch=1024, local_critical_batch=2049)
    assert not should_double(batch=1024, local_critical_batch=2048)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinearRamp(0, 1, 1), "first must be positive"),
        (lambda: LinearRamp(1, 2, 3).batch(-1), "examples must not be negative, got -1: a run starts at 0"),
    ],
)
def test_a_ramp_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
