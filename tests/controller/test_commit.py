"""The commit decision: the best devices of the same node, or a refusal; never a double use."""

from typing import Any

import msgspec
import pytest

from driver.controller.cluster import Cluster
from driver.controller.commit import Allow, Deny, decide
from driver.controller.proposal import read
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import ResourceSlice
from driver.wire.decode import convert
from tests.controller.commits import (
    claim,
    cluster,
    commit,
    gpu,
    land,
    picked,
    proposed,
    request,
    review,
    slice_of,
)

FOUR_SHARED = [gpu(index, mebi=15360) for index in range(4)]
FOUR_WHOLE = [gpu(index) for index in range(4)]


def devices(ruling: object) -> list[str]:
    """The names of the devices that a ruling stores."""
    assert isinstance(ruling, Allow), ruling
    return [result.device for result in ruling.results]


def test_a_share_goes_to_the_fullest_card_that_holds_it() -> None:
    """compact: the second share joins the first, whatever the scheduler picked."""
    at = cluster("compact", a=FOUR_SHARED)
    first = commit(at, claim("c1", request(mebi=7500)), picked("gpu-2", mebi=7500))
    second = commit(at, claim("c2", request(mebi=7500)), picked("gpu-3", mebi=7500))
    third = commit(at, claim("c3", request(mebi=7500)), picked("gpu-3", mebi=7500))
    assert devices(first) == devices(second)
    assert devices(third) != devices(first)


def test_spread_takes_the_emptiest_card() -> None:
    """spread: four shares go to four cards, though first fit would fill the first."""
    at = cluster("spread", a=FOUR_SHARED)
    rulings = [
        commit(at, claim(f"c{index}", request(mebi=7500)), picked("gpu-0", mebi=7500))
        for index in range(4)
    ]
    assert sorted(devices(ruling)[0] for ruling in rulings) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]


def test_none_keeps_the_choice_of_the_scheduler_while_it_is_free() -> None:
    """none: no patch; a choice that is taken is still replaced by one that is not."""
    at = cluster("none", a=FOUR_WHOLE)
    first = commit(at, claim("c1", request()), picked("gpu-2"))
    assert devices(first) == ["gpu-2"]
    assert isinstance(first, Allow)
    assert first.patch == []
    assert devices(commit(at, claim("c2", request()), picked("gpu-2"))) == ["gpu-0"]


def test_the_patch_changes_the_device_and_what_follows_from_it() -> None:
    """Pool, device and consumed capacity follow the device; the share keeps its ID."""
    at = cluster("compact", a=FOUR_SHARED)
    commit(at, claim("c1", request(mebi=100)), picked("gpu-1", mebi=100))
    pick = picked("gpu-3", mebi=100)
    ruling = commit(at, claim("c2", request(mebi=100)), pick)
    assert isinstance(ruling, Allow)
    (operation,) = ruling.patch
    assert operation["path"] == "/status/allocation/devices/results/0"
    assert operation["value"]["shareID"] == pick["shareID"]
    assert operation["value"]["device"] == devices(ruling)[0] != "gpu-3"
    assert operation["value"]["consumedCapacity"] == {"memory": "100Mi"}


def test_a_full_node_is_refused_with_a_sentence() -> None:
    """The denial names the claim, the node and the reason."""
    at = cluster("compact", a=[gpu(0)])
    commit(at, claim("c1", request()), picked("gpu-0"))
    ruling = commit(at, claim("c2", request()), picked("gpu-0"))
    assert isinstance(ruling, Deny)
    assert "claim ns/c2" in ruling.reason
    assert "node a" in ruling.reason


def test_the_same_question_gets_the_same_answer() -> None:
    """A retry of the API server on the same base: same devices, still one hold."""
    at = cluster("spread", a=FOUR_SHARED)
    free = claim("c1", request(mebi=7500))
    first = commit(at, free, picked("gpu-0", mebi=7500))
    again = commit(at, free, picked("gpu-0", mebi=7500))
    assert isinstance(first, Allow)
    assert isinstance(again, Allow)
    assert again.results == first.results
    assert at.ledger.outstanding() == 1


def test_another_node_for_the_same_version_is_held_as_well() -> None:
    """Both answers may land (rule 2)."""
    at = cluster("compact", a=[gpu(0)], b=[gpu(0)])
    free = claim("c1", request())
    commit(at, free, picked("gpu-0"))
    commit(at, free, picked("gpu-0", node="b"), node="b")
    assert isinstance(commit(at, claim("c2", request()), picked("gpu-0")), Deny)
    assert isinstance(commit(at, claim("c3", request()), picked("gpu-0", node="b"), node="b"), Deny)


def test_a_dry_run_leaves_no_trace() -> None:
    """The answer is real, but nothing is held afterwards."""
    at = cluster("compact", a=[gpu(0)])
    assert isinstance(commit(at, claim("c1", request()), picked("gpu-0"), dry_run=True), Allow)
    assert at.ledger.outstanding() == 0
    assert isinstance(commit(at, claim("c2", request()), picked("gpu-0")), Allow)


def test_a_write_that_cannot_land_is_let_go_without_a_hold() -> None:
    """Rule 3: the versions differ, so the API server will refuse it itself."""
    at = cluster("compact", a=[gpu(0)])
    at.ledger.observe(read_claim("c1", version=12), 0.0)
    ruling = commit(at, claim("c1", request(), version=11), picked("gpu-0"))
    assert ruling == Allow(outdated=True)
    assert at.ledger.outstanding() == 0


def test_a_refused_write_is_refused_again_on_an_old_version() -> None:
    """Rule 3: after a refusal silence would be taken for consent; some seconds later it is not."""
    at = cluster("compact", a=[gpu(0)])
    commit(at, claim("c1", request()), picked("gpu-0"))
    free = claim("c2", request(), version=11)
    assert isinstance(commit(at, free, picked("gpu-0"), now=100.0), Deny)
    at.ledger.observe(read_claim("c2", version=12), 100.0)
    assert isinstance(commit(at, free, picked("gpu-0"), now=104.0), Deny)
    assert commit(at, free, picked("gpu-0"), now=106.0) == Allow(outdated=True)


def read_claim(name: str, *, version: int) -> ResourceClaim:
    """A free claim as the watch shows it."""
    free = claim(name, request(), version=version)
    proposal = read(review(free, free | {"status": {"allocation": {"devices": {}}}}))
    assert proposal is not None
    return msgspec.structs.replace(proposal.claim, status=type(proposal.claim.status)())


def test_a_device_released_just_now_is_no_target_of_a_swap() -> None:
    """Rule 7: the scheduler may still count it; as its own pick it is fine."""
    at = cluster("compact", a=[gpu(0), gpu(1)])
    free = claim("c1", request())
    land(at, free, commit(at, free, picked("gpu-0")), version=11)
    at.ledger.observe(read_claim("c1", version=12), 100.0)
    assert devices(commit(at, claim("c2", request()), picked("gpu-1"), now=101.0)) == ["gpu-1"]
    assert devices(commit(at, claim("c3", request()), picked("gpu-0"), now=101.0)) == ["gpu-0"]


def test_devices_of_other_drivers_stay_and_count_for_constraints() -> None:
    """A NIC on one PCIe root keeps its place; the card follows it there."""
    cards = [gpu(index, pcieRoot=f"pci{index}") for index in range(3)]
    for index, card in enumerate(cards):
        card["attributes"]["resource.kubernetes.io/pcieRoot"] = {"string": f"pci{index}"}
    nic = {
        "name": "nic-0",
        "attributes": {"resource.kubernetes.io/pcieRoot": {"string": "pci2"}},
    }
    at = cluster("compact", a=cards)
    at.inventory.put_slice(slice_of("a", [nic], driver="nic.example.com"))
    free = claim(
        "c1",
        request(),
        request("nic"),
        constraints=[{"matchAttribute": "resource.kubernetes.io/pcieRoot"}],
    )
    ruling = commit(
        at, free, picked("gpu-2"), picked("nic-0", name="nic", driver="nic.example.com")
    )
    assert devices(ruling) == ["gpu-2", "nic-0"]


def test_admin_access_is_never_touched_and_holds_nothing() -> None:
    """A monitoring claim sees a card that is in use."""
    at = cluster("compact", a=[gpu(0)])
    commit(at, claim("c1", request()), picked("gpu-0"))
    watcher = claim("c2", request(adminAccess=True))
    ruling = commit(at, watcher, picked("gpu-0") | {"adminAccess": True})
    assert isinstance(ruling, Allow)
    assert ruling.patch == []


def test_mode_all_stays_and_is_refused_when_a_part_is_taken() -> None:
    """All devices or none; they are not ours to choose."""
    at = cluster("compact", a=[gpu(0), gpu(1)])
    everything = request(allocationMode="All", count=0)
    free = claim("c1", everything)
    ruling = commit(at, free, picked("gpu-0"), picked("gpu-1"))
    assert devices(ruling) == ["gpu-0", "gpu-1"]
    at = cluster("compact", a=[gpu(0), gpu(1)])
    commit(at, claim("c2", request()), picked("gpu-1"))
    assert isinstance(commit(at, free, picked("gpu-0"), picked("gpu-1")), Deny)


def test_the_alternative_that_the_scheduler_chose_stays() -> None:
    """A prioritised list: the second alternative is not exchanged for the first."""
    small = {"name": "small", "deviceClassName": "gpu.quadrant.dev", "count": 1}
    small["allocationMode"] = "ExactCount"
    big = small | {"name": "big", "count": 2}
    at = cluster("compact", a=FOUR_WHOLE)
    free = claim("c1", {"name": "gpu", "firstAvailable": [big, small]})
    ruling = commit(at, free, picked("gpu-3", name="gpu/small"))
    assert isinstance(ruling, Allow)
    assert [result.request for result in ruling.results] == ["gpu/small"]


@pytest.mark.parametrize("taken", [False, True])
def test_what_is_not_understood_keeps_the_choice_of_the_scheduler(taken: bool) -> None:
    """A field of a newer Kubernetes: no swap, and a refusal where the device is taken."""
    at = cluster("compact", a=FOUR_WHOLE)
    if taken:
        commit(at, claim("c0", request()), picked("gpu-3"))
        taken_device = "gpu-0"
    else:
        taken_device = "gpu-3"
    free = claim("c1", request(fancyNewField=True))
    ruling = commit(at, free, picked(taken_device))
    assert isinstance(ruling, Deny) if taken else devices(ruling) == ["gpu-3"]


def test_a_claim_of_another_driver_is_none_of_our_business() -> None:
    """No patch, no hold."""
    at = cluster("compact", a=[gpu(0)])
    ruling = commit(at, claim("c1", request()), picked("nic-0", driver="nic.example.com"))
    assert ruling == Allow()


def test_the_policy_of_the_claim_goes_before_the_default() -> None:
    """An annotation of the claim decides; an unknown one is refused with the known ones."""
    at = cluster("compact", a=FOUR_SHARED)
    spread = {"quadrant.dev/gpu-policy": "spread"}
    first = commit(at, claim("c1", request(mebi=100)), picked("gpu-0", mebi=100))
    free = claim("c2", request(mebi=100), annotations=spread)
    assert devices(commit(at, free, picked("gpu-0", mebi=100))) != devices(first)
    wrong = claim("c3", request(mebi=100), annotations={"quadrant.dev/gpu-policy": "sideways"})
    ruling = commit(at, wrong, picked("gpu-0", mebi=100))
    assert isinstance(ruling, Deny)
    assert "spread" in ruling.reason


def test_a_held_device_that_the_scheduler_picks_is_reported() -> None:
    """Rule 10: its holder was seen long ago, so the scheduler's book is wrong about it."""
    at = cluster("compact", a=[gpu(0)])
    free = claim("c1", request())
    land(at, free, commit(at, free, picked("gpu-0")), version=11, now=100.0)
    fresh = commit(at, claim("c2", request()), picked("gpu-0"), now=101.0)
    later = commit(at, claim("c3", request()), picked("gpu-0"), now=103.0)
    assert isinstance(fresh, Deny)
    assert isinstance(later, Deny)
    assert not fresh.believed_free
    assert [device.device for device in later.believed_free] == ["gpu-0"]


def test_what_a_status_update_cannot_change_is_judged_as_it_is_stored() -> None:
    """The API server drops another spec and fills in a UID that is left out, but only after us."""
    at = cluster("none", a=[gpu(0, model="big"), gpu(1, model="small")])
    wanted = {"cel": {"expression": "device.attributes['gpu.quadrant.dev'].model == 'big'"}}
    for name, pick in (("c1", "gpu-0"), ("c2", "gpu-1")):
        free = claim(name, request(selectors=[wanted] if name == "c1" else []))
        new = proposed(free | {"spec": {}}, picked(pick))
        new["metadata"] = {"name": name, "namespace": "ns", "resourceVersion": "10"}
        proposal = read(review(free, new))
        assert proposal is not None
        assert proposal.uid == f"uid-{name}"
        assert devices(decide(proposal, cluster=at, now=100.0, share_id=str)) == [pick]
    assert at.ledger.outstanding() == 2


def partitioned(policy: str) -> Cluster:
    """One card, to be had whole or in two halves."""
    at = cluster(policy, a=[])
    card = {"name": "card", "counters": {"slices": {"value": "2"}}}
    halves = [{"name": "half-0", "draws": 1}, {"name": "half-1", "draws": 1}]
    parts = [*halves, {"name": "whole", "draws": 2}]
    devices = []
    for part in parts:
        draws = {"counterSet": "card", "counters": {"slices": {"value": str(part.pop("draws"))}}}
        devices.append({**part, "consumesCounters": [draws]})
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 2}
    for name, more in (("0", {"sharedCounters": [card]}), ("1", {"devices": devices})):
        spec = {"driver": "gpu.quadrant.dev", "nodeName": "a", "pool": pool, **more}
        at.put_slice(convert(ResourceSlice, {"metadata": {"name": f"p{name}"}, "spec": spec}))
    at.inventory.remove_slice("gpu.quadrant.dev-a")
    return at


@pytest.mark.parametrize("more", [{}, {"fancyNewField": True}])
def test_a_kept_choice_must_be_covered_by_the_counters(more: dict[str, Any]) -> None:
    """No other claim holds the device `whole`, but a half of its card is taken."""
    at = partitioned("none")
    assert devices(commit(at, claim("c1", request()), picked("half-0"))) == ["half-0"]
    ruling = commit(at, claim("c2", request(**more)), picked("whole"))
    if more:
        assert isinstance(ruling, Deny)
        assert "counter card/slices" in ruling.reason
    else:
        assert devices(ruling) == ["half-1"]


def test_one_claim_cannot_have_a_card_and_its_half() -> None:
    """Each is free, and neither is held twice."""
    at = partitioned("none")
    free = claim("c1", request("a", fancyNewField=True), request("b"))
    ruling = commit(at, free, picked("half-0", name="a"), picked("whole", name="b"))
    assert isinstance(ruling, Deny)
    both = commit(at, free, picked("half-0", name="a"), picked("half-1", name="b"))
    assert devices(both) == ["half-0", "half-1"]
