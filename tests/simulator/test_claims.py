"""Which claims are made for a pod."""

from typing import Any

from driver.simulator import claims

TEMPLATE: dict[str, Any] = {
    "metadata": {"name": "one-gpu"},
    "spec": {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "x"}},
        "spec": {"devices": {"requests": [{"name": "gpu"}]}},
    },
}


def _pod(name: str = "web-1", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main"}]
    metadata = {"name": name, "namespace": "team", "uid": "pod-uid"}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def _find(name: str) -> dict[str, Any] | None:
    return TEMPLATE if name == "one-gpu" else None


def test_a_template_makes_a_claim_that_the_pod_owns() -> None:
    """Labels, annotations and spec come from the template, the owner is the pod."""
    pod = _pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}])
    ((name, claim),) = claims.from_templates(pod, _find)
    metadata = claim["metadata"]
    assert name == "gpu"
    assert metadata["generateName"] == "web-1-gpu-"
    assert metadata["namespace"] == "team"
    assert metadata["labels"] == {"team": "a"}
    assert metadata["annotations"] == {
        "note": "x",
        "resource.kubernetes.io/pod-claim-name": "gpu",
    }
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Pod", "web-1", "pod-uid")
    assert claim["spec"] == TEMPLATE["spec"]["spec"]


def test_claims_by_name_and_missing_templates_make_none() -> None:
    """A claim that exists is used as it is; a template that does not exist is waited for."""
    pod = _pod(
        resourceClaims=[
            {"name": "a", "resourceClaimName": "shared"},
            {"name": "b", "resourceClaimTemplateName": "missing"},
        ]
    )
    assert list(claims.from_templates(pod, _find)) == []


def test_long_names_are_cut_in_proportion() -> None:
    """The base of a generated name has at most 57 characters and keeps both parts."""
    entry = {"name": "c" * 40, "resourceClaimTemplateName": "one-gpu"}
    ((_, claim),) = claims.from_templates(_pod("p" * 60, resourceClaims=[entry]), _find)
    base = claim["metadata"]["generateName"]
    assert len(base) == 57
    assert (base.count("p"), base.count("c")) == (33, 22)
