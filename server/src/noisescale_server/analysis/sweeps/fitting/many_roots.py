"""Where many functions of one variable rise through zero, all at once."""

from collections.abc import Callable

import numpy as np

from noisescale_server.analysis.sweeps.points.hyperbola import Array

MOST_ITERATIONS = 60
CLOSE = 1e-7


def many_roots(above: Callable[[Array], Array], inside: Array, outside: Array, *, at_inside: Array) -> Array:
    """A place in each bracket where the function is about 0: within 1e-7 of it, or of the bracket's width.

    False position, where an end that stays twice is given half its height: a few steps do what bisection needs forty
    for. Source: Dowell & Jarratt 1971, BIT 11, "A modified regula falsi method" (Illinois).

    Args:
        above: The function at one place of each bracket, [G] to [G].
        inside: Where it is at most 0, [G].
        outside: Where it is positive, [G].
        at_inside: Its values at `inside`, [G].
    """
    at_outside, width = above(outside), np.abs(outside - inside)
    was_inside = was_outside = np.zeros(inside.shape, dtype=bool)
    middle = inside
    for _ in range(MOST_ITERATIONS):
        slope = at_outside - at_inside
        middle = outside - at_outside * (outside - inside) / np.where(slope > 0, slope, 1.0)
        at_middle = above(middle)
        is_inside = at_middle <= 0
        moved = np.abs(np.where(is_inside, middle - inside, middle - outside))
        # an end that stays twice is given half its height, or it would stay for ever where the function bends
        halved = np.where(is_inside & was_inside, at_outside / 2, at_outside)
        raised = np.where(~is_inside & was_outside, at_inside / 2, at_inside)
        at_outside, at_inside = np.where(is_inside, halved, at_middle), np.where(is_inside, at_middle, raised)
        inside, outside = np.where(is_inside, middle, inside), np.where(is_inside, outside, middle)
        was_inside, was_outside = is_inside, ~is_inside
        if np.all((np.abs(at_middle) <= CLOSE) | (moved <= CLOSE * width)):
            break
    return middle
