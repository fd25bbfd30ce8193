"""Who decides on a policy, and what happens to one that nobody knows."""

import pytest

from driver.controller.policies import (
    Policies,
    Setting,
    Source,
    UnknownPolicyError,
    own,
    resolve,
)
from driver.model import names
from driver.model.api import ObjectMeta
from driver.model.core import Pod
from driver.model.deviceclass import DeviceClass
from driver.model.resourceclaim import ResourceClaim
from driver.policy.weights import Weights
from driver.wire import decode
from tests.controller.podsamples import DEFAULTS


def claim(annotations: dict[str, str] | None = None, *classes: str) -> ResourceClaim:
    """A claim with a request for each class."""
    requests = [
        {"name": f"r{index}", "exactly": {"deviceClassName": name}}
        for index, name in enumerate(classes)
    ]
    return decode.convert(
        ResourceClaim,
        {
            "metadata": {"name": "c", "namespace": "team", "annotations": annotations or {}},
            "spec": {"devices": {"requests": requests}},
        },
    )


def pod(annotations: dict[str, str]) -> Pod:
    """A pod with annotations."""
    return Pod(metadata=ObjectMeta(name="p", namespace="team", annotations=annotations))


def configured(name: str, *parameters: object, driver: str = names.DRIVER) -> DeviceClass:
    """A class with opaque configurations."""
    config = [{"opaque": {"driver": driver, "parameters": item}} for item in parameters]
    return decode.convert(DeviceClass, {"metadata": {"name": name}, "spec": {"config": config}})


def placement(**policies: str) -> dict[str, str]:
    """Our opaque configuration."""
    return {"apiVersion": "quadrant.dev/v1alpha1", "kind": "PlacementPolicy", **policies}


def gpu(found: Policies) -> tuple[str, Source]:
    """What holds on the GPU axis."""
    return found.gpu.value, found.gpu.source


@pytest.mark.parametrize("strongest", [item for item in Source if item is not Source.DEFAULT])
def test_precedence(strongest: Source) -> None:
    """Claim, pod, class, namespace, default: each goes before all that follow, on its axis."""
    speaks = {source: source >= strongest for source in Source}
    told = {names.GPU_POLICY: "none"}
    config = (placement(gpuPolicy="none"),) if speaks[Source.DEVICE_CLASS] else ()
    found = resolve(
        claim(told if speaks[Source.CLAIM] else {}, "class"),
        pod(told if speaks[Source.POD] else {}),
        {"class": configured("class", *config)},
        ObjectMeta(name="team", annotations=told if speaks[Source.NAMESPACE] else {}),
        defaults=DEFAULTS,
    )
    assert gpu(found) == ("none", strongest)
    assert found.node == Setting(DEFAULTS.node, Source.DEFAULT, "the driver's default")


def test_nobody_there() -> None:
    """Parts that are unknown say nothing."""
    found = resolve(None, None, {}, None, defaults=DEFAULTS)
    assert (found.node.value, found.gpu.value) == (DEFAULTS.node, DEFAULTS.gpu)


@pytest.mark.parametrize("strongest", list(Source))
def test_weights_have_the_same_precedence(strongest: Source) -> None:
    """Whoever speaks first decides; nobody: nothing is weighed."""
    speaks = {source: source >= strongest for source in Source}
    told = {names.SCORING_WEIGHTS: "memory=3"}
    config = (placement(scoringWeights="memory=3"),) if speaks[Source.DEVICE_CLASS] else ()
    found = resolve(
        claim(told if speaks[Source.CLAIM] else {}, "class"),
        pod(told if speaks[Source.POD] else {}),
        {"class": configured("class", *config)},
        ObjectMeta(name="team", annotations=told if speaks[Source.NAMESPACE] else {}),
        defaults=DEFAULTS,
    )
    assert found.weights.source is strongest
    said = strongest is not Source.DEFAULT
    assert found.weighting() == (Weights(memory=3.0) if said else None)


def test_weights_that_mean_nothing_are_an_error() -> None:
    """The text names the place, and HAMi's annotation counts after ours."""
    hami = {names.HAMI_SCORING_WEIGHTS: "memory=much"}
    with pytest.raises(UnknownPolicyError, match=r"device-scoring-weights of pod team/p: .*much"):
        resolve(None, pod(hami), {}, None, defaults=DEFAULTS)
    ours = hami | {names.SCORING_WEIGHTS: "slot=0"}
    found = resolve(None, pod(ours), {}, None, defaults=DEFAULTS)
    assert found.weighting() == Weights(slot=0.0)


def test_hami_names_are_aliases() -> None:
    """HAMi's annotations count where ours are not set, on the same object."""
    hami = {names.HAMI_NODE_POLICY: "spread", names.HAMI_GPU_POLICY: "binpack"}
    found = resolve(None, pod(hami), {}, None, defaults=DEFAULTS)
    assert (found.node.value, found.gpu.value) == ("spread", "binpack")
    found = resolve(None, pod(hami | {names.GPU_POLICY: "none"}), {}, None, defaults=DEFAULTS)
    assert (found.node.value, found.gpu.value) == ("spread", "none")


def test_blank_values_say_nothing() -> None:
    """A template that had nothing to fill in leaves an empty annotation behind."""
    blank = {names.GPU_POLICY: "", names.HAMI_GPU_POLICY: "  "}
    assert gpu(resolve(None, pod(blank), {}, None, defaults=DEFAULTS))[1] is Source.DEFAULT
    spaced = {names.GPU_POLICY: " none "}
    assert gpu(resolve(None, pod(spaced), {}, None, defaults=DEFAULTS))[0] == "none"


def test_first_class_that_speaks() -> None:
    """Of several classes the first in the order of requests counts that says something."""
    classes = {
        "a": configured("a", {"apiVersion": "quadrant.dev/v1alpha1", "kind": "GpuConfig"}, "text"),
        "b": configured("b", placement(nodePolicy="spread")),
        "c": configured("c", placement(nodePolicy="none", gpuPolicy="none")),
        "d": configured("d", placement(gpuPolicy="spread"), driver="other.example.com"),
    }
    found = resolve(claim({}, "d", "a", "gone", "b", "c"), None, classes, None, defaults=DEFAULTS)
    assert (found.node.value, found.gpu.value) == ("spread", "none")
    assert found.node.where == "DeviceClass b"


def test_alternatives_name_classes_too() -> None:
    """The classes of a prioritised list count like others."""
    prioritised = decode.convert(
        ResourceClaim,
        {
            "metadata": {"name": "c"},
            "spec": {
                "devices": {
                    "requests": [
                        {"name": "r", "firstAvailable": [{"name": "x", "deviceClassName": "b"}]}
                    ]
                }
            },
        },
    )
    classes = {"b": configured("b", placement(gpuPolicy="none"))}
    found = resolve(prioritised, None, classes, None, defaults=DEFAULTS)
    assert gpu(found) == ("none", Source.DEVICE_CLASS)


def test_unknown_value_is_an_error() -> None:
    """The error names the place, the value, and what is known."""
    with pytest.raises(UnknownPolicyError) as raised:
        resolve(None, pod({names.GPU_POLICY: "tight"}), {}, None, defaults=DEFAULTS)
    text = str(raised.value)
    assert all(part in text for part in (names.GPU_POLICY, "pod team/p", "tight", "compact"))


def test_endless_value_is_not_remembered() -> None:
    """An annotation can be large; it is neither kept nor quoted."""
    with pytest.raises(UnknownPolicyError) as raised:
        resolve(None, pod({names.GPU_POLICY: "none," * 1000}), {}, None, defaults=DEFAULTS)
    assert len(str(raised.value)) < 300


def test_overruled_value_is_not_looked_at() -> None:
    """A wrong annotation of a namespace does no harm where a pod decides."""
    wrong = ObjectMeta(name="team", annotations={names.GPU_POLICY: "tight"})
    found = resolve(None, pod({names.GPU_POLICY: "none"}), {}, wrong, defaults=DEFAULTS)
    assert gpu(found) == ("none", Source.POD)


def test_own_policies_use_our_names() -> None:
    """What an object says by itself comes out under our annotations, checked."""
    said = {names.HAMI_NODE_POLICY: "spread", names.GPU_POLICY: "none", "other": "x"}
    assert own(ObjectMeta(annotations=said), "pod p", Source.POD) == {
        names.NODE_POLICY: "spread",
        names.GPU_POLICY: "none",
    }
    with pytest.raises(UnknownPolicyError):
        own(ObjectMeta(annotations={names.HAMI_GPU_POLICY: "mutex"}), "pod p", Source.POD)
