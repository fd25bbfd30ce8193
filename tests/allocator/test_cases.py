"""The cases handed with the project: Kubernetes' own results."""

import pytest

from tests.allocator.cases import Case, differences, handed, load

_FILE = handed()
_CASES = load(_FILE) if _FILE.exists() else []
_MISSING = f"the handed cases are not here ({_FILE}); set QUADRANT_SHARED to their folder"


@pytest.mark.skipif(not _CASES, reason=_MISSING)
def test_the_handed_cases_are_all_there() -> None:
    """A shortened file would make the test below say less than it seems to."""
    assert len(_CASES) == 167


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_first_fit_does_what_the_scheduler_does(case: Case) -> None:
    """Every handed case comes out as Kubernetes' allocator has it."""
    assert differences(case) == []
