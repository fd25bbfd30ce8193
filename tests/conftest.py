"""What holds for all tests."""

from hypothesis import settings

# No wall-clock asserts: a loaded machine must not fail a test. The same examples in every run: a
# red build says something about the change, not about luck.
settings.register_profile("quadrant", deadline=None, derandomize=True)
settings.load_profile("quadrant")
