"""What is worked out early: all of it, once, and again where something has changed."""

import asyncio
import gc

import pytest

from driver.allocator import pools
from driver.controller.cluster import Cluster
from driver.controller.commit import Allow
from driver.controller.warming import collect_seldom, keep_warm, warm, warm_up
from driver.model.deviceclass import DeviceClass
from driver.selector.device import SelectorDevice
from driver.selector.judge import judge_of
from driver.wire.decode import convert
from tests.controller.commits import claim, cluster, commit, gpu, picked, request, slice_of


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Devices made ready for selectors, by driver, in the order in which that happened."""
    judge_of.cache_clear()
    made: list[str] = []
    make = SelectorDevice.__init__

    def noted(self: SelectorDevice, driver: str, device: object) -> None:
        made.append(driver)
        make(self, driver, device)  # type: ignore[arg-type]

    monkeypatch.setattr(SelectorDevice, "__init__", noted)
    return made


@pytest.fixture
def two_nodes() -> Cluster:
    """Two nodes of two cards each, told by the watches."""
    made = cluster()
    for node in ("a", "b"):
        made.put_slice(slice_of(node, [gpu(0), gpu(1)]))
    return made


def test_in_steps(two_nodes: Cluster) -> None:
    """A step takes no more nodes than it may, and tells when nothing is left."""
    assert not warm(two_nodes, 1)
    assert warm(two_nodes, 1)
    assert warm(two_nodes, 1)


def test_decisions_find_all_of_it(two_nodes: Cluster, evaluated: list[str]) -> None:
    """The first decision on a node makes no device ready for selectors any more."""
    assert warm(two_nodes, 10)
    before = len(evaluated)
    # All four cards are the same to the selector.
    assert before == 1
    commit(two_nodes, claim("c", request()), picked("gpu-0"))
    assert len(evaluated) == before


def test_decisions_find_the_layout(two_nodes: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the cards of a node are connected is worked out before the first decision too."""
    assert warm(two_nodes, 10)
    monkeypatch.setattr(pools, "Scored", None)
    allowed = commit(two_nodes, claim("c", request()), picked("gpu-0"))
    assert isinstance(allowed, Allow)
    assert allowed.explanation is not None


@pytest.mark.parametrize("change", ["slice", "class"])
def test_changes_are_followed(two_nodes: Cluster, change: str) -> None:
    """A new slice makes its node cold again, a new class all nodes."""
    warm(two_nodes, 10)
    if change == "slice":
        two_nodes.put_slice(slice_of("a", [gpu(0)]))
    else:
        spec = {"selectors": [{"cel": {"expression": "device.driver == 'x'"}}]}
        two_nodes.put_class(convert(DeviceClass, {"metadata": {"name": "x"}, "spec": spec}))
    assert two_nodes.cold == ({"a"} if change == "slice" else {"a", "b"})
    assert warm(two_nodes, 10)


async def test_before_and_after_the_start(two_nodes: Cluster) -> None:
    """`warm_up` ends with nothing left; `keep_warm` works on what comes later."""
    await warm_up(two_nodes)
    assert not two_nodes.cold
    following = asyncio.create_task(keep_warm(two_nodes))
    two_nodes.put_slice(slice_of("c", [gpu(0)]))
    while two_nodes.cold:  # noqa: ASYNC110 # the set has no events
        await asyncio.sleep(0)
    following.cancel()
    gc.unfreeze()


def test_the_collector_looks_seldom_and_still_looks() -> None:
    """Fifty thousand new objects between two looks; nothing is switched off."""
    before = gc.get_threshold()
    try:
        collect_seldom()
        assert gc.get_threshold() == (50_000, *before[1:])
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)
