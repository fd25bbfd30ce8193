"""Cards are counted as they are, and a recount of what has changed equals one of everything."""

from hypothesis import given
from hypothesis import strategies as st

from driver.controller.census import Census, Tally
from driver.controller.cluster import Cluster
from driver.model.ids import ClaimUid, ObjectKey
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import convert
from tests.controller.commits import Json, claim, cluster, gpu, picked, proposed, request, slice_of

MIB = 1024 * 1024
T4 = 15360


def t4(index: int, **attributes: str | int) -> Json:
    """A shareable T4."""
    return gpu(index, mebi=T4, productName="T4", **attributes)


def hold(at: Cluster, name: str, *results: Json, version: int = 10, node: str = "a") -> None:
    """The watch shows a claim with these devices."""
    free = claim(name, request(), version=version)
    at.put_claim(convert(ResourceClaim, proposed(free, *results, node=node)), 0.0)


def census(at: Cluster) -> Census:
    """Everything counted."""
    made = Census(at)
    while not made.refresh(3):
        pass
    return made


def test_cards_by_state() -> None:
    """Whole, shared, tainted and free cards, with their memory."""
    tainted = t4(3) | {"taints": [{"key": "x", "effect": "NoSchedule"}]}
    at = cluster(a=[t4(0), t4(1), t4(2), tainted])
    hold(at, "whole", picked("gpu-0"))
    hold(at, "share", picked("gpu-1", mebi=5000))
    assert census(at).by_model() == {
        "T4": Tally(
            physical=4,
            allocatable=3,
            committed=2,
            memory=4 * T4 * MIB,
            memory_committed=(T4 + 5000) * MIB,
            free=(2 * T4 - 5000) * MIB,
            free_whole=T4 * MIB,
        )
    }


def test_a_tainted_card_that_is_held_is_allocatable() -> None:
    """Nobody is driven away from it, so it does not go missing from what is given."""
    held = t4(0) | {"taints": [{"key": "x", "effect": "NoSchedule"}]}
    at = cluster(a=[held])
    hold(at, "c", picked("gpu-0"))
    tally = census(at).by_model()["T4"]
    assert (tally.allocatable, tally.committed, tally.free) == (1, 1, 0)


def test_fragmentation_is_the_part_of_the_free_memory_beside_others() -> None:
    """One card a third full, one free."""
    at = cluster(a=[t4(0), t4(1)])
    assert census(at).by_model()["T4"].fragmentation == 0
    hold(at, "c", picked("gpu-0", mebi=T4 // 3))
    assert round(census(at).by_model()["T4"].fragmentation, 2) == 0.4


def test_a_mig_device_counts_for_its_card() -> None:
    """The card is committed with the memory of the part; no card is counted twice."""
    whole = gpu(0, productName="A100", type="gpu")
    whole["capacity"] = {"memory": {"value": "40Gi"}}
    part = {
        "name": "gpu-0-mig-1g5gb-0",
        "attributes": {
            "type": {"string": "mig"},
            "parentUUID": {"string": "GPU-0"},
            "productName": {"string": "A100"},
        },
        "capacity": {"memory": {"value": "5Gi"}},
    }
    at = cluster(a=[whole, part])
    hold(at, "c", picked("gpu-0-mig-1g5gb-0"))
    tally = census(at).by_model()["A100"]
    assert (tally.physical, tally.committed) == (1, 1)
    assert tally.memory_committed == 5 * 1024 * MIB
    assert (tally.free, tally.free_whole) == (35 * 1024 * MIB, 0)


def test_groups_are_of_linked_cards_on_one_node() -> None:
    """Where cards have no links, the node is what they share."""
    linked = [t4(n, nvlinkGroup="0" if n < 3 else "1") for n in range(4)]
    at = cluster(a=linked, b=[t4(0), t4(1)])
    assert census(at).groups() == {"T4": {3: 1, 1: 1, 2: 1}}
    hold(at, "c", picked("gpu-0"))
    assert census(at).groups() == {"T4": {2: 2, 1: 1}}


def test_only_cards_of_ours_are_counted() -> None:
    """Another driver's devices are another driver's."""
    at = cluster(a=[t4(0)])
    at.inventory.put_slice(slice_of("a", [t4(0)], driver="other.example.com"))
    assert census(at).by_model()["T4"].physical == 1


NODES = ("a", "b", "c")
step = st.one_of(
    st.tuples(st.just("hold"), st.sampled_from(NODES), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("free"), st.integers(0, 5)),
    st.tuples(st.just("slice"), st.sampled_from(NODES), st.integers(0, 3)),
    st.tuples(st.just("unpublish"), st.sampled_from(NODES)),
    st.tuples(st.just("count"), st.integers(1, 2)),
)


@given(st.lists(step, max_size=30))
def test_following_the_changes_gives_what_counting_all_gives(
    steps: list[tuple[object, ...]],
) -> None:
    """Whatever happens, in whatever steps it is followed."""
    three = [t4(0), t4(1), t4(2)]
    at = cluster(a=three, b=three, c=three)
    followed = Census(at)
    for version, (what, *facts) in enumerate(steps, start=20):
        match what, facts:
            case "hold", [str(node), int(card), bool(share)]:
                result = picked(f"gpu-{card}", node=node, mebi=1000 if share else 0)
                hold(at, f"c-{version}", result, version=version, node=node)
            case "free", [int(back)]:
                name = f"c-{version - back}"
                at.remove_claim(
                    ObjectKey("ns", name), ClaimUid(f"uid-{name}"), version=version, now=0.0
                )
            case "slice", [str(node), int(cards)]:
                at.put_slice(slice_of(node, [t4(index) for index in range(cards)]))
            case "unpublish", [str(node)]:
                at.remove_slice(f"gpu.quadrant.dev-{node}")
            case "count", [int(at_most)]:
                followed.refresh(at_most)
    while not followed.refresh(1):
        pass
    afresh = census(at)
    assert followed.by_model() == afresh.by_model()
    assert followed.groups() == afresh.groups()
