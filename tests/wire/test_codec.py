"""Objects of the API server come in, decisions go out."""

import base64
import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.model.deviceclass import DeviceClass
from driver.model.errors import InvalidObjectError
from driver.model.quantity import whole
from driver.model.resourceclaim import AllocationResult, ResourceClaim
from driver.model.resourceslice import DeviceCapacity, ResourceSlice
from driver.wire.admission import AdmissionReview, allowed, denied
from driver.wire.decode import convert, decode
from driver.wire.encode import builtins, encode
from driver.wire.patch import pointer
from driver.wire.unknown import unknown_in

SHARED = Path(os.environ.get("QUADRANT_SHARED", Path(__file__).parents[2].parent / "shared"))
CASES = SHARED / "cases" / "allocator" / "cases.json"
CLAIM = {
    "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu",
                        "allocationMode": "ExactCount",
                        "count": 1,
                        "capacity": {"requests": {"memory": "7500Mi"}},
                    },
                }
            ],
            "config": [{"opaque": {"driver": "d", "parameters": {"a": [1, {"b": None}]}}}],
        }
    },
}


def test_a_claim_reads_and_writes_back() -> None:
    """Opaque parameters and quantities come back as they were."""
    assert builtins(convert(ResourceClaim, CLAIM)) == CLAIM


def test_fields_of_a_later_release_are_dropped() -> None:
    """Reading goes on without them; `driver.wire.unknown` tells whoever must know."""
    later = json.loads(json.dumps(CLAIM))
    later["spec"]["devices"]["requests"][0]["exactly"]["fancy"] = 1
    later["metadata"]["managedFields"] = [{"manager": "x"}]
    raw = json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"} | later)
    assert builtins(decode(ResourceClaim, raw)) == CLAIM


_LOTS = {"name": "r", "exactly": {"capacity": {"requests": {"memory": "lots"}}}}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", "ResourceClaim"),
        ("[]", "ResourceClaim"),
        ('{"metadata": {"name": 1}}', r"\$\.metadata\.name"),
        (json.dumps({"metadata": {}, "spec": {"devices": {"requests": [_LOTS]}}}), "'lots'"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, place: str) -> None:
    """The error names the kind, and the field or the text that is wrong."""
    with pytest.raises(InvalidObjectError, match=place) as error:
        decode(ResourceClaim, text)
    assert "ResourceClaim cannot be read" in str(error.value)


def test_numbers_stand_for_quantities_in_manifests() -> None:
    """YAML makes a number of `memory: 5`; the API server takes it as well."""
    assert convert(DeviceCapacity, {"value": 5}).value == whole(5)
    assert encode(DeviceCapacity(value=whole(5))) == b'{"value":"5"}'


@pytest.mark.skipif(not CASES.exists(), reason=f"the handed cases are not at {CASES}")
def test_the_handed_cases_are_understood_completely() -> None:
    """Every field that Kubernetes 1.37's own allocator tests use has a place in the model."""
    kinds: dict[str, type] = {
        "claims": ResourceClaim,
        "slices": ResourceSlice,
        "classes": DeviceClass,
        "expected": AllocationResult,
    }
    for case in json.loads(CASES.read_text()):
        for name, kind in kinds.items():
            for item in case[name]:
                raw = json.dumps(item).encode()
                assert unknown_in(kind, item) == (), case["name"]
                again = encode(decode(kind, raw))
                assert builtins(decode(kind, again)) == builtins(decode(kind, raw)), case["name"]


@given(st.lists(st.text(max_size=5), max_size=3))
def test_pointers_lead_to_their_place(parts: list[str]) -> None:
    """Unescaped, a pointer gives the parts back, whatever is in them."""
    split = pointer(*parts).split("/")[1:]
    assert [part.replace("~1", "/").replace("~0", "~") for part in split] == parts


def test_an_answer_that_allows_carries_its_patch() -> None:
    """base64 of a JSON patch, as the API server wants it."""
    answer = json.loads(allowed("1", patch=[{"op": "add", "path": "/a", "value": 1}]))
    response = answer["response"]
    assert (response["uid"], response["allowed"], response["patchType"]) == ("1", True, "JSONPatch")
    patch = json.loads(base64.b64decode(response["patch"]))
    assert patch == [{"op": "add", "path": "/a", "value": 1}]
    assert "patch" not in json.loads(allowed("1", patch=[]))["response"]


def test_a_refusal_is_always_a_403() -> None:
    """A 409 would make the scheduler try again at once, five times (design, rule 12)."""
    response = json.loads(denied("1", "no"))["response"]
    assert response["allowed"] is False
    assert response["status"]["code"] == 403
    assert response["status"]["message"] == "no"


def test_a_review_keeps_its_objects_raw() -> None:
    """They are decoded only by whoever needs them."""
    raw = {"request": {"uid": "1", "operation": "UPDATE", "object": {"a": 1}, "dryRun": True}}
    review = decode(AdmissionReview, json.dumps(raw))
    assert bytes(review.request.object) == b'{"a": 1}'
    assert review.request.dry_run
    assert bytes(review.request.old_object) == bytes(msgspec.Raw(b"null"))
