"""The ledger's rules, one by one (design.md, "The ledger")."""

import msgspec
import pytest

from driver.controller.ledger import ANSWER_MAY_LAND_S, QUARANTINE_S, Answer, AnswerKey, Ledger
from driver.model.api import ObjectMeta
from driver.model.ids import ClaimUid, DeviceId, ObjectKey
from driver.model.quantity import whole
from driver.model.resourceclaim import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)

UID = ClaimUid("uid-1")
OTHER = ClaimUid("uid-2")
GPU_0 = DeviceId("gpu.test", "node-a", "gpu-0")
GPU_1 = DeviceId("gpu.test", "node-b", "gpu-1")


def result(
    device: DeviceId, *, share: str | None = None, mebi: int = 0, admin: bool = False
) -> DeviceRequestAllocationResult:
    """A result that takes the whole device, or a share of its memory."""
    return DeviceRequestAllocationResult(
        request="gpu",
        driver=device.driver,
        pool=device.pool,
        device=device.device,
        share_id=share,
        admin_access=admin or None,
        consumed_capacity={"memory": whole(mebi)} if mebi else {},
    )


def claim(
    version: int, *results: DeviceRequestAllocationResult, uid: ClaimUid = UID
) -> ResourceClaim:
    """The claim at a version; without results it is free."""
    metadata = ObjectMeta(name="c", namespace="ns", uid=uid, resource_version=str(version))
    free = ResourceClaim(metadata=metadata)
    if not results:
        return free
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return msgspec.structs.replace(free, status=ResourceClaimStatus(allocation=allocation))


def answer(
    ledger: Ledger, base: int, device: DeviceId, *, uid: ClaimUid = UID, at: float = 0.0
) -> AnswerKey:
    """Give an answer as the hook does."""
    assert ledger.base(uid, base, at)
    key = AnswerKey(base, device.pool)
    ledger.answer(Answer(ObjectKey("ns", "c"), uid, key, (result(device),), at))
    return key


def test_a_commit_seen_is_in_use_for_all_others() -> None:
    """What is seen allocated counts for everybody but the claim itself."""
    ledger = Ledger()
    ledger.observe(claim(5, result(GPU_0)), 0.0)
    assert ledger.use()[GPU_0].exclusive
    assert GPU_0 in ledger.use_for(OTHER)
    assert GPU_0 not in ledger.use_for(UID)


def test_admin_access_uses_nothing() -> None:
    """A result with admin access takes nothing from anybody."""
    ledger = Ledger()
    ledger.observe(claim(5, result(GPU_0, admin=True)), 0.0)
    assert not ledger.use()


def test_shares_add_up_over_claims() -> None:
    """Consumed capacity is the sum of all shares; the shares themselves are kept apart."""
    ledger = Ledger()
    ledger.observe(claim(5, result(GPU_0, share="s1", mebi=100)), 0.0)
    ledger.observe(claim(6, result(GPU_0, share="s2", mebi=50), uid=OTHER), 0.0)
    assert ledger.use()[GPU_0].consumed["memory"] == whole(150)
    assert ledger.use()[GPU_0].shares == {"s1", "s2"}
    assert ledger.use_for(UID)[GPU_0].consumed["memory"] == whole(50)


def test_an_answer_holds_from_the_moment_it_is_given() -> None:
    """An answer that is not seen yet is in use for all others (rule 1)."""
    ledger = Ledger()
    answer(ledger, 5, GPU_0)
    assert GPU_0 in ledger.use_for(OTHER)


@pytest.mark.parametrize("version", [3, 5])
def test_events_at_or_below_the_base_are_ignored(version: int) -> None:
    """Late news of a free claim do not release an answer that rests on newer news (rule 1)."""
    ledger = Ledger()
    key = answer(ledger, 5, GPU_0)
    ledger.observe(claim(version), 0.0)
    ledger.forget(UID, version, 0.0)
    assert ledger.find(UID, key) is not None
    assert GPU_0 in ledger.use()


def test_late_news_of_an_earlier_allocation_are_ignored() -> None:
    """An allocation older than the base was over at the base."""
    ledger = Ledger()
    answer(ledger, 5, GPU_0)
    ledger.observe(claim(4, result(GPU_1)), 0.0)
    assert GPU_1 not in ledger.use()


def test_an_answer_falls_when_the_claim_is_seen_later_without_it() -> None:
    """A higher version without the allocation: the write on the old base cannot land (rule 1)."""
    ledger = Ledger()
    key = answer(ledger, 5, GPU_0)
    ledger.observe(claim(6), 0.0)
    assert ledger.find(UID, key) is None
    assert GPU_0 not in ledger.use()


def test_an_answer_becomes_the_commit_without_a_gap() -> None:
    """When the answer is seen to have landed, the device was never free in between."""
    ledger = Ledger()
    answer(ledger, 5, GPU_0)
    ledger.observe(claim(6, result(GPU_0)), 1.0)
    assert ledger.use()[GPU_0].exclusive
    assert ledger.outstanding() == 0
    assert not ledger.quarantined({GPU_0}, 1.0)


def test_both_answers_to_one_base_are_held() -> None:
    """Same base, other node: either may still land, so both devices are taken (rule 2)."""
    ledger = Ledger()
    first, second = answer(ledger, 5, GPU_0), answer(ledger, 5, GPU_1)
    assert ledger.find(UID, first) is not None
    assert ledger.find(UID, second) is not None
    assert {GPU_0, GPU_1} <= set(ledger.use_for(OTHER))
    ledger.observe(claim(6, result(GPU_1)), 0.0)
    assert set(ledger.use()) == {GPU_1}


def test_a_question_on_an_outdated_version_is_known_as_such() -> None:
    """A write on a version older than what is known cannot land (rule 3)."""
    ledger = Ledger()
    ledger.observe(claim(7), 0.0)
    assert not ledger.base(UID, 6, 0.0)
    assert ledger.base(UID, 7, 0.0)


def test_a_question_on_the_version_that_is_allocated_is_refused() -> None:
    """A claim that is seen allocated at this very version cannot be free at it."""
    ledger = Ledger()
    ledger.observe(claim(7, result(GPU_0)), 0.0)
    assert not ledger.base(UID, 7, 0.0)
    assert GPU_0 in ledger.use()


def test_a_newer_base_proves_that_the_old_allocation_and_answers_are_gone() -> None:
    """The API server showing the claim free at a higher version is news like any other."""
    ledger = Ledger()
    ledger.observe(claim(5, result(GPU_0)), 0.0)
    answer(ledger, 9, GPU_1, at=1.0)
    assert set(ledger.use()) == {GPU_1}
    answer(ledger, 12, GPU_0, at=2.0)
    assert set(ledger.use()) == {GPU_0}


def test_deletion_releases_everything() -> None:
    """A deletion after the base takes the answers with it."""
    ledger = Ledger()
    answer(ledger, 5, GPU_0)
    ledger.forget(UID, 6, 0.0)
    assert not ledger.use()
    assert ledger.outstanding() == 0


def test_only_old_answers_are_overdue() -> None:
    """An answer may land for 40 s; then it needs a live look (rule 4)."""
    ledger = Ledger()
    answer(ledger, 5, GPU_0, at=100.0)
    assert not ledger.overdue(100.0 + ANSWER_MAY_LAND_S - 0.1)
    assert [due.uid for due in ledger.overdue(100.0 + ANSWER_MAY_LAND_S)] == [UID]


def test_an_answer_that_never_arrived_is_taken_back() -> None:
    """Nobody can act on what was not written (rule 6)."""
    ledger = Ledger()
    key = answer(ledger, 5, GPU_0)
    ledger.take_back(UID, key, 0.0)
    assert not ledger.use()


def test_an_answer_given_twice_is_not_taken_back() -> None:
    """The other caller may still act on it."""
    ledger = Ledger()
    key = answer(ledger, 5, GPU_0)
    ledger.repeat(UID, key)
    ledger.take_back(UID, key, 0.0)
    assert GPU_0 in ledger.use()


def test_a_released_whole_device_is_in_quarantine_for_a_while() -> None:
    """The scheduler may not have seen the release yet (rule 7)."""
    ledger = Ledger()
    ledger.observe(claim(5, result(GPU_0)), 0.0)
    ledger.observe(claim(6), 10.0)
    assert ledger.quarantined({GPU_0}, 10.0)
    assert not ledger.quarantined({GPU_1}, 10.0)
    assert not ledger.quarantined({GPU_0}, 10.0 + QUARANTINE_S)


def test_a_released_share_is_in_no_quarantine() -> None:
    """The scheduler counts shares by their IDs, so it cannot mistake them."""
    ledger = Ledger()
    ledger.observe(claim(5, result(GPU_0, share="s1", mebi=1)), 0.0)
    ledger.observe(claim(6), 10.0)
    assert not ledger.quarantined({GPU_0}, 10.0)


def test_the_holder_of_a_whole_device_is_known_since_it_was_seen() -> None:
    """A second event of the same allocation does not make it younger (rule 10)."""
    ledger = Ledger()
    ledger.observe(claim(5, result(GPU_0)), 1.0)
    ledger.observe(claim(6, result(GPU_0)), 9.0)
    holder = ledger.holder(GPU_0)
    assert holder is not None
    assert holder.since == 1.0
    assert ledger.holder(GPU_1) is None


def test_a_relist_that_shows_another_allocation_moves_the_hold() -> None:
    """Released and allocated again between two lists: the old device is free, the new one held."""
    ledger = Ledger()
    ledger.observe(claim(5, result(GPU_0)), 0.0)
    ledger.observe(claim(9, result(GPU_1)), 3.0)
    assert set(ledger.use()) == {GPU_1}
    assert ledger.quarantined({GPU_0}, 3.0)
    assert not ledger.quarantined({GPU_1}, 3.0)


def test_every_observation_may_be_repeated() -> None:
    """The same news twice is the same state."""
    ledger = Ledger()
    for _ in range(2):
        ledger.observe(claim(5, result(GPU_0)), 0.0)
    for _ in range(2):
        ledger.forget(UID, 6, 0.0)
    assert not ledger.use()


def test_tidying_forgets_only_what_nobody_needs() -> None:
    """Versions of claims that exist, that are held or answered stay."""
    ledger = Ledger()
    ledger.observe(claim(5), 0.0)
    ledger.observe(claim(6, result(GPU_1), uid=OTHER), 0.0)
    ledger.tidy(existing=set(), now=0.0)
    assert ledger.seen(UID) == 0
    assert ledger.seen(OTHER) == 6
