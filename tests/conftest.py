"""What holds for all tests."""

import pytest
from hypothesis import settings

# No wall-clock asserts: a loaded machine must not fail a test. The same examples in every run: a
# red build says something about the change, not about luck.
settings.register_profile("quadrant", deadline=None, derandomize=True)
settings.load_profile("quadrant")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `-n 2 --dist loadgroup` the tests that share one cluster run beside all others."""
    for item in items:
        shared = "whole_site" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("site" if shared else "apart"))
