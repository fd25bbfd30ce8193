"""Annotations of our own domain that would be passed over in silence (docs/policies.md)."""

from typing import Any

import pytest

from driver.controller.pods import Patch, Refused, ReviewContext, review_pod
from driver.model import names
from driver.model.api import ObjectMeta
from driver.model.keys import On, annotations
from driver.model.resourceclaim import ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from driver.wire import decode
from tests.controller.podsamples import MEMORY, OUR_CLASS, container, context, device_class, pod

SHARE = container(limits={MEMORY: "5"})
BY_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "ours"}


def refusal(raw: dict[str, Any], given: ReviewContext | None = None) -> str:
    """The sentence of a refusal."""
    verdict = review_pod(raw, given or context())
    assert isinstance(verdict, Refused), verdict
    return verdict.message


def warnings(raw: dict[str, Any], given: ReviewContext | None = None) -> tuple[str, ...]:
    """What is said of a pod that passes."""
    verdict = review_pod(raw, given or context())
    assert isinstance(verdict, Patch), verdict
    return verdict.warnings


def template(
    annotations: dict[str, str] | None = None, of_claims: dict[str, str] | None = None
) -> ResourceClaimTemplate:
    """A template of our class, with annotations of its own and for its claims."""
    request = {"name": "gpu", "exactly": {"deviceClassName": names.DRIVER}}
    spec = {
        "metadata": {"annotations": of_claims or {}},
        "spec": {"devices": {"requests": [request]}},
    }
    metadata = {"name": "ours", "annotations": annotations or {}}
    return decode.convert(ResourceClaimTemplate, {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        ("quadrant.dev/gpu-polcy", "did you mean quadrant.dev/gpu-policy?"),
        ("quadrant.dev/GPU-policy", "did you mean quadrant.dev/gpu-policy?"),
        ("Quadrant.dev/gpu-policy", "did you mean quadrant.dev/gpu-policy?"),
        ("gpu.quadrant.dev/node-policy", "did you mean quadrant.dev/node-policy?"),
        ("quadrant.dev/weights", "did you mean quadrant.dev/scoring-weights?"),
        ("quadrant.dev/priority", "is not known (known on a Pod: quadrant.dev/node-policy"),
        ("quadrant.dev/cordoned", "means nothing on a Pod, only on: Node"),
    ],
)
def test_a_slip_is_refused(annotation: str, says: str) -> None:
    """With the key, the pod, and what was probably meant."""
    said = refusal(pod(SHARE, annotations={annotation: "spread"}))
    assert f"annotation {annotation} of pod app-" in said
    assert says in said


def test_all_slips_are_told_at_once() -> None:
    """Who mends one must not meet the next."""
    wrong = {"quadrant.dev/gpu-polcy": "spread", "quadrant.dev/node-polcy": "spread"}
    said = refusal(pod(SHARE, annotations=wrong))
    assert "quadrant.dev/gpu-polcy" in said
    assert "quadrant.dev/node-polcy" in said


@pytest.mark.parametrize(
    "annotation", ["quadrant.development/x", "example.com/gpu-policy", "gpu-policy", "hami.io/x"]
)
def test_other_domains_are_not_ours(annotation: str) -> None:
    """What others call their annotations is their business."""
    assert warnings(pod(SHARE, annotations={annotation: "x"})) == ()


def test_what_was_refused_once_is_understood_where_it_belongs() -> None:
    """Every annotation of the table passes on the objects that it is for, ours as well."""
    values = {
        names.HAMI_MODE: "hami-core", names.SCORING_WEIGHTS: "slot=1",
        names.HAMI_SCORING_WEIGHTS: "slot=1", names.ORIGINAL_RESOURCES: "{}",
        names.EXTENDED_RESOURCES: "[]",
    }  # fmt: skip
    on_pod = {name: values.get(name, "spread") for name in annotations(On.POD)}
    assert warnings(pod(container(), annotations=on_pod)) == ()
    on_claim = {name: values.get(name, "spread") for name in annotations(On.CLAIM)}
    given = context(templates={"ours": template(of_claims=on_claim)})
    assert warnings(pod(container(), resourceClaims=[BY_TEMPLATE]), given) == ()


def test_a_slip_on_a_claim_is_refused_with_the_pod() -> None:
    """It would decide on the pod's devices, whether the claim is there or made of a template."""
    wrong = {"quadrant.dev/gpu-polcy": "spread"}
    given = context(templates={"ours": template(of_claims=wrong)})
    assert "gpu-polcy of claim" in refusal(pod(container(), resourceClaims=[BY_TEMPLATE]), given)
    entry = {"name": "gpu", "resourceClaimName": "mine"}
    claim = ResourceClaim(
        metadata=ObjectMeta(name="mine", annotations=wrong), spec=ResourceClaimSpec()
    )
    said = refusal(pod(container(), resourceClaims=[entry]), context(claims={"mine": claim}))
    assert "gpu-polcy of claim mine is not known; did you mean quadrant.dev/gpu-policy?" in said


def test_a_slip_of_others_is_warned_of() -> None:
    """Who creates a pod cannot mend namespaces and classes, and must not be kept from its pods."""
    selector = OUR_CLASS.spec.selectors[0].cel
    assert selector is not None
    given = context(
        namespace=ObjectMeta(name="team", annotations={"quadrant.dev/gpu-polcy": "spread"}),
        classes={
            names.DRIVER: device_class(
                names.DRIVER, selector.expression, annotations={names.GPU_POLICY: "spread"}
            )
        },
        templates={"ours": template()},
    )
    of_class, of_namespace = warnings(pod(container(), resourceClaims=[BY_TEMPLATE]), given)
    assert "gpu-policy of DeviceClass" in of_class
    assert "means nothing on a DeviceClass, only on: Pod, ResourceClaim, Namespace" in of_class
    assert "gpu-polcy of namespace team is not known" in of_namespace


def test_a_policy_beside_the_claims_metadata_is_warned_of() -> None:
    """A template's own metadata is not that of its claims."""
    aside = {names.GPU_POLICY: "spread", names.LAST_USED: "2026-12-01T00:00:00Z"}
    given = context(templates={"ours": template(aside)})
    (said,) = warnings(pod(container(), resourceClaims=[BY_TEMPLATE]), given)
    assert "gpu-policy of template ours (its claims have those of spec.metadata)" in said
