import pytest

from noisescale_server.services.series import default_window


@pytest.mark.parametrize(
    ("run_steps", "window"),
    [(1, 1), (300, 15), (800, 40), (5_120, 256), (20_000, 256), (25_600, 256), (100_000, 1_000)],
)
def test_the_window_nobody_chose_is_5_percent_of_a_short_run_and_1_percent_of_a_long_one(run_steps, window):
    assert default_window(run_steps=run_steps, shown_steps=run_steps) == window


@pytest.mark.parametrize(("run_steps", "blocks_of"), [(300_000, 32**2), (10_000_000, 32**3)])
def test_a_level_that_draws_a_smooth_line_gives_the_window_its_8_blocks(run_steps, blocks_of):
    window = default_window(run_steps=run_steps, shown_steps=run_steps)

    assert window == 8 * blocks_of
    assert 0.01 * run_steps <= window <= 0.05 * run_steps


def test_a_zoom_into_a_long_run_gets_the_finer_window():
    assert default_window(run_steps=10_000_000, shown_steps=1_000_000) == 100_000
