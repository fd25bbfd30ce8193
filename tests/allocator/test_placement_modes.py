"""The two-by-two demonstration, decided claim by claim on two unlike nodes."""

import pytest
from msgspec.structs import replace

from driver.allocator.allocate import allocate
from driver.allocator.outcome import Allocated, choice, node_view
from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId
from driver.policy.registry import node_scorer, objective
from tests.allocator.build import card, claim, node, problem, request, slice_of

_NODES = {"t4": ("15360Mi", "T4"), "a10g": ("23028Mi", "A10G")}


def _place(node_policy: str, gpu_policy: str, pods: int) -> list[tuple[str, str]]:
    """Where each of so many pods of 7500Mi goes: (node, device)."""
    slices = [
        slice_of(*(card(index, memory, model) for index in range(4)), name=name, pool=name).on(name)
        for name, (memory, model) in _NODES.items()
    ]
    use: dict[DeviceId, DeviceUse] = {}
    placed = []
    for number in range(pods):
        asked = claim(request().with_capacity(memory="7500Mi"), name=f"pod-{number}")
        options = []
        for name in sorted(_NODES):
            here = problem(slices, asked, use=use, on=node(name))
            outcome = allocate(here, objective=objective(gpu_policy))
            assert isinstance(outcome, Allocated)
            scorer = node_scorer(node_policy)
            assert scorer is not None
            rank = scorer.rank(node_view(here), choice(here, outcome.allocations))
            options.append((rank, name, outcome))
        _, name, outcome = max(options, key=lambda option: option[0])
        result = outcome.allocations[0].devices.results[0]
        before = use.get(result.device_id(), DeviceUse())
        amounts = result.consumed_capacity
        use[result.device_id()] = replace(
            before,
            shares=before.shares | {f"share-{number}"},
            consumed={
                one: amount + before.consumed[one] if one in before.consumed else amount
                for one, amount in amounts.items()
            },
        )
        placed.append((name, result.device))
    return placed


@pytest.mark.parametrize(
    ("node_policy", "gpu_policy", "per_node", "gpus"),
    [
        ("compact", "compact", [4], 2),
        ("spread", "compact", [2, 2], 2),
        ("compact", "spread", [4], 4),
        ("spread", "spread", [2, 2], 4),
    ],
    ids=["A", "B", "C", "D"],
)
def test_the_four_modes(node_policy: str, gpu_policy: str, per_node: list[int], gpus: int) -> None:
    """Nodes and cards fill as the two policies say."""
    placed = _place(node_policy, gpu_policy, pods=4)
    nodes = [name for name, _ in placed]
    assert sorted(nodes.count(name) for name in set(nodes)) == per_node
    assert len(set(placed)) == gpus
