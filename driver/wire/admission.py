"""What the API server asks a webhook and what it is answered (`admission.k8s.io/v1`)."""

import base64
from typing import Any

import msgspec

from driver.model.api import ApiStruct
from driver.wire.patch import Operation, document

_EMPTY = msgspec.Raw(b"null")


class AdmissionRequest(ApiStruct, frozen=True, kw_only=True):
    """One request under review; the objects stay raw until somebody needs them."""

    uid: str
    operation: str = ""
    namespace: str = ""
    name: str = ""
    sub_resource: str = ""
    dry_run: bool = False
    object: msgspec.Raw = _EMPTY
    old_object: msgspec.Raw = _EMPTY


class AdmissionReview(ApiStruct, frozen=True, kw_only=True):
    """The envelope of a question."""

    request: AdmissionRequest


def allowed(
    uid: str, *, patch: list[Operation] | None = None, warnings: tuple[str, ...] = ()
) -> bytes:
    """An answer that lets the request pass, changed by `patch` where one is given."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(document(patch)).decode()
    if warnings:
        response["warnings"] = list(warnings)
    return _review(response)


def denied(uid: str, message: str) -> bytes:
    """An answer that refuses with a sentence.

    The code is always 403: a 409 makes kube-scheduler retry at once, five times (design.md).
    """
    status = {"code": 403, "reason": "Forbidden", "message": message}
    return _review({"uid": uid, "allowed": False, "status": status})


def _review(response: dict[str, Any]) -> bytes:
    return msgspec.json.encode(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    )
