"""A planner that remembers says what one says that has just been made and remembers nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.controller.cluster import Cluster
from driver.controller.kinds import Kinds
from driver.controller.planner import Plan, Planner
from driver.model.core import Pod
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import convert
from tests.controller.commits import Json, cluster, gpu, picked, proposed, request, slice_of
from tests.controller.placements import add_claim, modes, node, place, pod

NODES = ("a", "b", "c", "d")
SELECTOR: Json = {
    "selectors": [{"cel": {"expression": "device.attributes['gpu.quadrant.dev'].index < 2"}}]
}
LINKED = {"constraints": [{"matchAttribute": "gpu.quadrant.dev/nvlinkGroup"}]}
# What pods ask: requests, the rest of the claim, and the policies.
ASKS: list[tuple[Json, Json, tuple[str, str]]] = [
    (request(mebi=400), {}, ("compact", "compact")),
    (request(mebi=700), {}, ("spread", "spread")),
    (request(count=2), {}, ("compact", "topology")),
    (request(count=2), LINKED, ("spread", "compact")),
    (request(mebi=300, **SELECTOR), {}, ("topology", "none")),
]


def published(name: str, *, tied: bool = False, tainted: bool = False) -> Any:
    """A slice of four cards; `tied`: all linked with each other; `tainted`: one can be used."""
    cards = [
        gpu(index, mebi=1000, nvlinkGroup=f"{name}-{0 if tied else index // 2}", numa=index // 2)
        for index in range(4)
    ]
    for card in cards[1:] if tainted else ():
        card["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    return slice_of(name, cards)


class World:
    """One cluster with a planner that lives long, and everything that may happen to it."""

    def __init__(self) -> None:
        self.at: Cluster = cluster()
        for name in NODES:
            self.at.put_node(node(name))
            self.at.inventory.put_slice(published(name))
        self.planner = Planner(self.at)
        self.pods: list[Pod] = []
        for number, (asked, rest, policies) in enumerate(ASKS):
            self.add_pod(f"ask-{number}", asked, rest, policies)
        self.asking = list(self.pods)
        self.version = 100

    def add_pod(self, name: str, asked: Json, rest: Json, policies: tuple[str, str]) -> Pod:
        """A pod with a claim."""
        add_claim(self.at, name, asked, **rest)
        made = pod(name, name, annotations=modes(*policies))
        self.pods.append(made)
        return made

    def nominate(self, number: int) -> None:
        """One more pod is placed."""
        name = f"pod-{len(self.pods)}"
        place(self.planner, self.add_pod(name, *ASKS[number % len(ASKS)]))

    def withdraw(self, number: int) -> None:
        """One of the pods is expected nowhere any more."""
        self.planner.withdraw(self.pods[number % len(self.pods)].metadata.uid)

    def commit(self, number: int) -> None:
        """Somebody's claim is committed, or released."""
        self.version += 1
        name = f"other-{number % 8}"
        free = add_claim(self.at, name, request(), version=self.version)
        if number % 3:
            self.version += 1
            share = 200 if number % 2 else 0
            result = picked(f"gpu-{number % 4}", node=NODES[number // 4 % 4], mebi=share)
            stored = proposed(free, result, node=NODES[number // 4 % 4])
            stored["metadata"] = stored["metadata"] | {"resourceVersion": str(self.version)}
            self.at.put_claim(convert(ResourceClaim, stored), now=0.0)

    def cordon(self, number: int) -> None:
        """A node is cordoned, or free again."""
        self.at.put_node(node(NODES[number % 4], unschedulable=bool(number // 4 % 2)))

    def publish(self, number: int) -> None:
        """A node's cards are linked otherwise, or one has a taint."""
        name = NODES[number % 4]
        tied, tainted = bool(number // 4 % 2), bool(number // 8 % 2)
        self.at.inventory.put_slice(published(name, tied=tied, tainted=tainted))

    def lose(self, number: int) -> None:
        """A node goes, or is back."""
        name = NODES[number % 4]
        if name in self.at.nodes:
            self.at.remove_node(name)
        else:
            self.at.put_node(node(name))


STEPS: list[Callable[[World, int], None]] = [
    World.nominate,
    World.nominate,
    World.withdraw,
    World.commit,
    World.commit,
    World.cordon,
    World.publish,
    World.lose,
]


def essence(plan: Plan) -> tuple[Any, ...]:
    """What must be the same."""
    rejected = sorted((item.reason, item.count) for item in plan.rejections)
    return plan.node, plan.score, plan.allocations, plan.runners_up, rejected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(range(len(STEPS))), st.integers(0, 31), st.booleans()),
        max_size=25,
    )
)
def test_remembering_changes_no_plan(steps: list[tuple[int, int, bool]]) -> None:
    """After anything that can happen, whether the planner was asked in between or not."""
    world = World()
    for step, number, asked in steps:
        STEPS[step](world, number)
        if asked:
            compare(world)
    compare(world)


def compare(world: World) -> None:
    """Ask both planners for every kind of pod."""
    for one in world.asking:
        if world.at.nominations.get(one.metadata.uid) is not None:
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Kinds, "of", lambda *_, **__: None)
            fresh = essence(Planner(world.at).explain(one))
        assert essence(world.planner.explain(one)) == fresh
