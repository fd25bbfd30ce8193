"""Which claims are prepared, which are refused, and who may have what."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.model.api import ObjectMeta
from driver.model.resourceclaim import ResourceClaim
from driver.node.claims import ClaimRef, entry, usable_uid
from driver.node.errors import ClaimRefusedError
from driver.node.held import HeldDevice, PreparedClaim, conflict
from tests.node.builders import BOOT, UIDS, claim, facts, held, prepared, ref, result


def _other_uid() -> ResourceClaim:
    found = claim(0, result("gpu-0"))
    metadata: ObjectMeta = msgspec.structs.replace(found.metadata, uid=UIDS[5])
    return msgspec.structs.replace(found, metadata=metadata)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "does not exist any more"),
        (_other_uid(), f"was replaced by one with UID {UIDS[5]}"),
        (claim(0), "is not allocated"),
        (claim(0, result("gpu-0"), reserved=False), "reserved for no pod"),
        (claim(0, result("nic-0", driver="nic.example.com")), "no device of driver gpu.quadrant"),
        (claim(0, result("gpu-0", pool="n2")), "this node's pool is n1"),
        (claim(0, result("gpu-7")), "this node does not have; it has gpu-0, gpu-1, gpu-2, gpu-3"),
    ],
)
def test_what_is_refused_and_what_is_said(found: ResourceClaim | None, said: str) -> None:
    """Every refusal names the claim and what was expected."""
    with pytest.raises(ClaimRefusedError, match=said) as refusal:
        entry(ref(), found, facts())
    assert "default/claim-0" in str(refusal.value)


@pytest.mark.parametrize("uid", ["", "../../etc/passwd", "a/b", ".", "-", "x" * 65, "a\n"])
def test_a_uid_that_is_no_file_name_is_refused(uid: str) -> None:
    """It becomes part of a path."""
    assert not usable_uid(uid)
    with pytest.raises(ClaimRefusedError, match="UID"):
        entry(ClaimRef("default", "claim-0", uid), claim(0, result("gpu-0")), facts())


def test_what_a_claim_holds() -> None:
    """Whole cards, shares with what they consume, subrequests under their request's name."""
    found = claim(
        0,
        result("gpu-0", "whole"),
        result("gpu-1", "part/first", memory="7500Mi", cores="30", share="s"),
        result("gpu-2", "memory-only", memory="4Gi"),
        result("nic-0", "nic", driver="nic.example.com"),
    )
    held_by = entry(ref(), found, facts())
    assert (held_by.phase, held_by.boot) == ("intent", BOOT)
    assert held_by.devices == (
        held("gpu-0", "whole"),
        held("gpu-1", "part", memory=7500, cores=30, share="s", subrequest="first"),
        held("gpu-2", "memory-only", memory=4096, cores=100, share="share-memory-only-gpu-2"),
    )


def _share(device: str, memory: int, cores: int = 10) -> HeldDevice:
    return held(device, memory=memory, cores=cores, share=f"{device}-{memory}")


@pytest.mark.parametrize(
    ("wanted", "others", "said"),
    [
        ([held("gpu-0")], [], None),
        ([held("gpu-0")], [[held("gpu-1")]], None),
        ([held("gpu-0")], [[held("gpu-0")]], "gpu-0 is wanted whole, but held by claim default/cl"),
        ([held("gpu-0")], [[_share("gpu-0", 10)]], "gpu-0 is wanted whole, but held"),
        ([_share("gpu-0", 10)], [[held("gpu-0")]], "gpu-0 is held whole by claim default/claim-1"),
        ([_share("gpu-0", 7500)], [[_share("gpu-0", 7500)]], None),
        ([_share("gpu-0", 7680)], [[_share("gpu-0", 7681)]], "15Gi of memory, 7680Mi are wanted"),
        ([_share("gpu-0", 1)], [[_share("gpu-0", 1), _share("gpu-0", 15359)]], "15Gi are held"),
        ([_share("gpu-0", 1, 51)], [[_share("gpu-0", 1, 50)]], "100 cores, 51 are wanted and 50"),
        ([_share("gpu-0", 1, 0)], [[_share("gpu-0", 1, 100)]], None),
        ([held("gpu-0", admin=True)], [[held("gpu-0")]], None),
        ([held("gpu-0")], [[held("gpu-0", admin=True)]], None),
        ([held("gpu-0"), held("gpu-0", "b")], [], "whole and more than once to this claim"),
        ([_share("gpu-0", 9000), _share("gpu-0", 9001)], [], "17Gi|18001Mi are wanted"),
        ([held("gpu-1"), _share("gpu-2", 1)], [[held("gpu-2")]], "gpu-2 is held whole"),
    ],
)
def test_who_may_have_what(
    wanted: list[HeldDevice], others: list[list[HeldDevice]], said: str | None
) -> None:
    """No card twice, no capacity above what there is."""
    rivals = [prepared(number, devices) for number, devices in enumerate(others, 1)]
    reason = conflict(prepared(0, wanted), rivals)
    assert (reason is None) == (said is None)
    if said is not None and reason is not None:
        assert any(part in reason for part in said.split("|"))


def test_entries_of_the_claim_itself_and_of_earlier_boots_do_not_count() -> None:
    """No container survives a reboot."""
    wanted = prepared(0, [held("gpu-0")])
    assert conflict(wanted, [prepared(0, [held("gpu-0")])]) is None
    assert conflict(wanted, [prepared(1, [held("gpu-0")], boot="boot-0")]) is None
    assert conflict(wanted, [prepared(1, [held("gpu-0")])]) is not None


_SHARES = st.builds(
    _share, st.sampled_from(["gpu-0", "gpu-1"]), st.integers(1, 9000), st.integers(0, 60)
)
_WHOLES = st.sampled_from(["gpu-0", "gpu-1"]).map(held)


@given(st.lists(st.lists(st.one_of(_SHARES, _WHOLES), min_size=1, max_size=3), max_size=8))
def test_claims_that_are_let_in_one_by_one_never_overrun_a_card(
    claims: list[list[HeldDevice]],
) -> None:
    """Whatever is asked for in whatever order."""
    inside: list[PreparedClaim] = []
    for number, devices in enumerate(claims):
        wanted = prepared(number, devices)
        if conflict(wanted, inside) is None:
            inside.append(wanted)
    for name in ("gpu-0", "gpu-1"):
        users = [(c.uid, d) for c in inside for d in c.devices if d.device == name]
        assert sum(d.memory for _, d in users) <= held(name).card_memory
        assert sum(d.cores for _, d in users) <= 100
        assert all(d.share_id for _, d in users) or len(users) == 1
