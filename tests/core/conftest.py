"""Property tests of pure formulas: the same examples every time, and no clock."""

from hypothesis import settings

settings.register_profile("theory", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("theory")
