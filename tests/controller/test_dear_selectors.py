"""Selectors that Kubernetes lets pass, and that would keep everybody waiting here."""

from typing import Any

import pytest

from driver.allocator import pools
from driver.controller.cluster import Cluster
from driver.controller.commit import Allow, Deny
from driver.controller.planner import Planner
from driver.controller.warming import warm
from driver.model.deviceclass import DeviceClass
from driver.model.errors import TooDearError
from driver.wire.decode import convert
from tests.controller.commits import claim, cluster, commit, gpu, picked, request
from tests.controller.placements import add_claim, pod

Json = dict[str, Any]


def dear(number: int = 0, *, loops: int = 40) -> Json:
    """A selector that is true; with 40 it costs as much as Kubernetes 1.37.2 stores."""
    values = "[" + ",".join(map(str, range(loops))) + "]"
    turns = f"{values}.all(a, {values}.all(b, {values}.all(c, a + b + c + {number} >= 0)))"
    return {"cel": {"expression": f"device.driver != '' && {turns}"}}


def sized(**nodes: int) -> Cluster:
    """So many cards on each node."""
    return cluster("compact", **{name: [gpu(n) for n in range(n)] for name, n in nodes.items()})


@pytest.mark.parametrize(
    "selectors",
    [
        pytest.param([dear()], id="one that takes half a second"),
        pytest.param([dear(n, loops=12) for n in range(32)], id="many that take some time"),
    ],
)
def test_a_commit_with_dear_selectors_keeps_the_choice_of_the_scheduler(
    selectors: list[Json],
) -> None:
    """It has evaluated them; whether the device is free needs no selector."""
    at = sized(a=8)
    ruling = commit(at, claim("c1", request(selectors=selectors)), picked("gpu-5"))
    assert isinstance(ruling, Allow)
    assert [result.device for result in ruling.results] == ["gpu-5"]
    again = commit(at, claim("c2", request(selectors=selectors)), picked("gpu-5"))
    assert isinstance(again, Deny)


def test_a_pod_with_dear_selectors_is_left_to_the_scheduler() -> None:
    """What takes too long on one node is not tried on the next."""
    at = sized(a=8, b=8, c=8)
    add_claim(at, "c", request(selectors=[dear()]))
    waiting = pod("p", "c")
    at.put_pod(waiting)
    planner = Planner(at)
    for _ in range(2):
        with pytest.raises(TooDearError):
            planner.plan(waiting)
    verdicts = planner.verdicts(waiting)
    assert verdicts is not None
    assert verdicts.evaluations == 0


def test_the_same_problem_is_always_too_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when all of its selectors have been evaluated before, one claim at a time."""
    at = sized(a=8)
    parts = [request(f"r{n}", selectors=[dear(n, loops=3)]) for n in range(4)]
    for part in parts:
        pick = picked("gpu-0", name=part["name"])
        assert isinstance(commit(at, claim("one", part), pick, dry_run=True), Allow)
    picks = [picked(f"gpu-{7 - n}", name=f"r{n}") for n in range(4)]
    monkeypatch.setattr("driver.allocator.plan.SELECTORS_MAY_COST", 5_000)
    assert pools.SELECTORS_MAY_COST > 5_000
    kept = commit(at, claim("all", *parts), *picks, dry_run=True)
    assert isinstance(kept, Allow)
    assert kept.patch == []


def test_a_class_with_dear_selectors_does_not_end_the_warming_up() -> None:
    """It is the work of an administrator, but no reason to die."""
    at = sized(a=1)
    spec = {"selectors": [dear()]}
    at.put_class(convert(DeviceClass, {"metadata": {"name": "dear"}, "spec": spec}))
    assert warm(at, 10)
