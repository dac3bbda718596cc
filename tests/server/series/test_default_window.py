import pytest

from noisescale_server.services.series import default_window


@pytest.mark.parametrize(
    ("num_steps", "window"),
    [(1, 1), (300, 15), (800, 40), (5_120, 256), (20_000, 256), (25_600, 256), (1_000_000, 10_000)],
)
def test_the_window_nobody_chose_is_5_percent_of_a_short_run_and_1_percent_of_a_long_one(num_steps, window):
    assert default_window(num_steps) == window
