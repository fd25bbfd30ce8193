"""What happens to a pod at creation: label, gate, translation, refusal."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.controller.pods import Patch, Referenced, Refused, ReviewContext, referenced, review_pod
from driver.controller.translate import ResourceNames
from driver.model import names
from driver.model.allocation import Features
from driver.model.api import ObjectMeta
from driver.model.resourceclaim import ResourceClaim, ResourceClaimTemplate
from driver.wire import decode
from tests.controller.podsamples import (
    A10G,
    CORES,
    GPU,
    MEMORY,
    NETWORK_CLASS,
    OUR_CLASS,
    OUR_MAPPED_CLASS,
    PERCENTAGE,
    PRIORITY,
    container,
    context,
    device_class,
    pod,
)
from tests.kube.patches import json_patch

GATE = {"name": names.PLACEMENT_GATE}
OURS = {"name": "dra", "resourceClaimTemplateName": "ours"}
DAEMON_SET = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}]
SERVED = context(extended_resources_served=True, classes={names.DRIVER: OUR_MAPPED_CLASS})


def spec_of(*classes: str) -> dict[str, Any]:
    """The spec of a claim with a request for each class."""
    requests = [{"name": f"r-{c[0]}", "exactly": {"deviceClassName": c}} for c in classes]
    return {"devices": {"requests": requests}}


def template_of(*classes: str, **metadata: Any) -> ResourceClaimTemplate:
    """A template for claims of these classes."""
    body = {"metadata": {}, "spec": {"metadata": metadata, "spec": spec_of(*classes)}}
    return decode.convert(ResourceClaimTemplate, body)


def claim_of(*classes: str, **metadata: Any) -> ResourceClaim:
    """A claim of these classes."""
    return decode.convert(ResourceClaim, {"metadata": metadata, "spec": spec_of(*classes)})


KNOWN = context(
    templates={"ours": template_of(names.DRIVER), "nic": template_of("nic.example.com")},
    claims={"shared": claim_of("nic.example.com", names.DRIVER)},
)


def patched(
    raw: dict[str, Any], given: ReviewContext | None = None
) -> tuple[dict[str, Any], Patch]:
    """The pod as it would be stored."""
    verdict = review_pod(raw, given or context())
    assert isinstance(verdict, Patch), verdict
    return json_patch(raw, [dict(item) for item in verdict.operations]), verdict


def refusal(raw: dict[str, Any], given: ReviewContext | None = None) -> str:
    """The sentence of a refusal."""
    verdict = review_pod(raw, given or context())
    assert isinstance(verdict, Refused), verdict
    return verdict.message


def is_gated(raw: dict[str, Any]) -> bool:
    """Whether the pod waits for its placement."""
    return GATE in raw["spec"].get("schedulingGates", [])


def is_labelled(raw: dict[str, Any]) -> bool:
    """Whether the watch on our pods sees it."""
    return bool(raw["metadata"].get("labels", {}).get(names.POD_LABEL) == "true")


# Label and gate


@pytest.mark.parametrize(
    ("raw", "given", "ours"),
    [
        pytest.param(pod(container()), KNOWN, False, id="no devices"),
        pytest.param(pod(container(), resourceClaims=[OURS]), KNOWN, True, id="our template"),
        pytest.param(
            pod(container(), resourceClaims=[{"name": "x", "resourceClaimName": "shared"}]),
            KNOWN,
            True,
            id="a claim of which a part is ours",
        ),
        pytest.param(
            pod(container(), resourceClaims=[{"name": "x", "resourceClaimTemplateName": "nic"}]),
            KNOWN,
            False,
            id="somebody else's devices",
        ),
        pytest.param(
            pod(container(), resourceClaims=[{"name": "x", "resourceClaimTemplateName": "later"}]),
            KNOWN,
            True,
            id="a template that does not exist yet may be ours",
        ),
        pytest.param(
            pod(container(), resourceClaims=[{"name": "of-a-group"}]),
            KNOWN,
            False,
            id="a claim of a kind that we do not know",
        ),
        pytest.param(pod(container(limits={GPU: "1"})), SERVED, True, id="our extended resource"),
        pytest.param(
            pod(container(), init=(container("i", {GPU: "1"}),)), SERVED, True, id="of init"
        ),
        pytest.param(pod(container(limits={GPU: "0"})), SERVED, False, id="none of it"),
        pytest.param(
            pod(container(limits={"deviceclass.resource.kubernetes.io/gpu.quadrant.dev": "1"})),
            SERVED,
            True,
            id="the class by its implicit name",
        ),
        pytest.param(
            pod(container(limits={"deviceclass.resource.kubernetes.io/gpu.quadrant.dev": "1"})),
            context(),
            False,
            id="an implicit name that is not served",
        ),
        pytest.param(
            pod(container(limits={GPU: "1"})),
            context(
                extended_resources_served=True,
                classes={"nv": device_class("nv", 'device.driver == "gpu.nvidia.com"', GPU)},
            ),
            False,
            id="a name that leads to another driver",
        ),
        pytest.param(pod(container(limits={MEMORY: "5"})), context(), True, id="HAMi's words"),
    ],
)
def test_who_is_gated(raw: dict[str, Any], given: ReviewContext, ours: bool) -> None:
    """Label and gate go to pods that ask for our devices in any way, and to no others."""
    stored, _ = patched(raw, given)
    assert (is_gated(stored), is_labelled(stored)) == (ours, ours)


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [({"nodeName": "n"}, {}), ({}, {"ownerReferences": DAEMON_SET})],
    ids=["a node is set", "of a DaemonSet"],
)
def test_no_gate_where_the_node_is_settled(spec: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Such a pod is ours, but has nothing to wait for."""
    raw = pod(container(), resourceClaims=[OURS], **spec)
    raw["metadata"] |= metadata
    stored, _ = patched(raw, KNOWN)
    assert (is_gated(stored), is_labelled(stored)) == (False, True)


def test_other_gates_and_labels_stay() -> None:
    """What the pod has already is added to."""
    raw = pod(container(), resourceClaims=[OURS], schedulingGates=[{"name": "quota"}])
    raw["metadata"]["labels"] = {"app": "x"}
    stored, _ = patched(raw, KNOWN)
    assert stored["spec"]["schedulingGates"] == [{"name": "quota"}, GATE]
    assert stored["metadata"]["labels"] == {"app": "x", names.POD_LABEL: "true"}


def test_mirror_pods_are_left_alone() -> None:
    """The picture of a static pod is not changed, or its kubelet would make it again and again."""
    mirror = {"kubernetes.io/config.mirror": "x"}
    raw = pod(container(limits={GPU: "1"}), annotations=mirror, nodeName="n")
    assert patched(raw)[0] == raw


def test_class_of_a_name_is_the_newest() -> None:
    """Of two classes with one name the newer counts, as Kubernetes has it."""
    ours = device_class("a", f'device.driver == "{names.DRIVER}"', GPU, creation_timestamp="2026")
    other = device_class("b", 'device.driver == "x"', GPU, creation_timestamp="2025")
    raw = pod(container(limits={GPU: "1"}))
    given = context(extended_resources_served=True, classes={"a": ours, "b": other})
    assert is_gated(patched(raw, given)[0])
    newer = device_class("b", 'device.driver == "x"', GPU, creation_timestamp="2027")
    given = context(extended_resources_served=True, classes={"a": ours, "b": newer})
    assert not is_gated(patched(raw, given)[0])


# Translation


def test_translated_pod() -> None:
    """The whole of it: resources gone, claim there, origin noted, template made."""
    raw = pod(
        container("main", {"cpu": "1", GPU: "1", MEMORY: "7500"}),
        annotations={names.HAMI_GPU_POLICY: "binpack"},
    )
    stored, verdict = patched(raw)
    assert verdict.template is not None
    name = verdict.template.metadata.name
    assert stored["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1"},
        "requests": {"cpu": "1"},
        "claims": [{"name": "gpu", "request": "gpu-0"}],
    }
    assert stored["spec"]["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": name}]
    noted = stored["metadata"]["annotations"]
    asked = {GPU: "1", MEMORY: "7500"}
    assert json.loads(noted[names.ORIGINAL_RESOURCES]) == {
        "main": {"limits": asked, "requests": asked}
    }
    assert json.loads(noted[names.EXTENDED_RESOURCES]) == [
        {
            "claimName": "gpu",
            "containerName": "main",
            "requestName": "gpu-0",
            "resourceName": resource,
        }
        for resource in (GPU, MEMORY)
    ]
    assert verdict.template.spec.metadata.annotations == {names.GPU_POLICY: "binpack"}
    assert verdict.template.metadata.namespace == "team"
    assert verdict.warnings == ()


def test_resources_of_other_names() -> None:
    """Where the cluster has its own names for them, HAMi's are somebody else's."""
    given = context(resources=ResourceNames(count="example.com/card", memory="example.com/vram"))
    asked = {"example.com/card": "1", "example.com/vram": "7500"}
    stored, verdict = patched(pod(container(limits={**asked, GPU: "1"})), given)
    assert stored["spec"]["containers"][0]["resources"]["limits"] == {GPU: "1"}
    assert verdict.template is not None
    (request,) = verdict.template.spec.spec.devices.requests
    assert request.exactly is not None
    assert request.exactly.capacity is not None
    assert set(request.exactly.capacity.requests) == {"memory", "cores"}


def test_replicas_share_a_template() -> None:
    """Pods that differ in what has nothing to do with devices use the same template."""
    first = patched(pod(container("a", {GPU: "1", MEMORY: "5"})))[1]
    second = patched(pod(container("b", {"cpu": "3", MEMORY: "5"}), nodeSelector={"x": "y"}))[1]
    assert first.template == second.template


def test_plain_cards_stay_where_kubernetes_maps_them() -> None:
    """The scheduler's own claim is scored at commit; the limit stays in the pod."""
    raw = pod(container(limits={GPU: "2"}))
    stored, verdict = patched(raw, SERVED)
    assert stored["spec"]["containers"] == raw["spec"]["containers"]
    assert verdict.template is None


def test_plain_cards_stay_with_a_device_plugin() -> None:
    """Its cards would be out of reach else; what no plugin knows is translated all the same."""
    beside = context(plugin_serves=True)
    stored, verdict = patched(pod(container(limits={GPU: "2"})), beside)
    assert (verdict.template, is_gated(stored)) == (None, False)
    for limits, annotations in (
        ({GPU: "1", MEMORY: "5"}, {}),
        ({GPU: "1"}, {"nvidia.com/use-gputype": "T4"}),
    ):
        _, verdict = patched(pod(container(limits=limits), annotations=annotations), beside)
        assert verdict.template is not None


@pytest.mark.parametrize(
    ("limits", "annotations", "given"),
    [
        pytest.param({GPU: "2"}, {}, context(), id="not served"),
        pytest.param(
            {GPU: "2"},
            {},
            context(extended_resources_served=True, classes={"c": OUR_CLASS}),
            id="no class has the name",
        ),
        pytest.param({GPU: "2", CORES: "100"}, {}, SERVED, id="more than a number of cards"),
        pytest.param({GPU: "2"}, {"nvidia.com/use-gputype": "T4"}, SERVED, id="and which cards"),
    ],
)
def test_plain_cards_are_translated_elsewhere(
    limits: dict[str, Any], annotations: dict[str, str], given: ReviewContext
) -> None:
    """Where an extended resource cannot say it, or nobody serves it, a claim does."""
    stored, verdict = patched(pod(container(limits=limits), annotations=annotations), given)
    assert verdict.template is not None
    assert stored["spec"]["containers"][0]["resources"]["limits"] == {}


def test_containers_side_by_side() -> None:
    """Each container has its own request of one claim; one that asks for nothing is not touched."""
    raw = pod(
        container("a", {MEMORY: "5"}),
        container("plain", {"cpu": "1"}),
        container("b", {GPU: "1", CORES: "50"}),
        init=(container("first", {MEMORY: "3"}),),
    )
    stored, verdict = patched(raw)
    uses = {
        item["name"]: item["resources"].get("claims")
        for item in (*stored["spec"]["initContainers"], *stored["spec"]["containers"])
    }
    assert uses == {
        "first": [{"name": "gpu", "request": "gpu-0"}],
        "a": [{"name": "gpu", "request": "gpu-0"}],
        "plain": None,
        "b": [{"name": "gpu", "request": "gpu-1"}],
    }
    assert verdict.template is not None
    assert len(verdict.template.spec.spec.devices.requests) == 2


def test_existing_claims_stay() -> None:
    """A claim of the user's that has our favourite name keeps it."""
    raw = pod(
        container("main", {MEMORY: "5"}),
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "nic"}],
    )
    raw["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    stored, _ = patched(raw, KNOWN)
    assert [item["name"] for item in stored["spec"]["resourceClaims"]] == ["gpu", "gpu-1"]
    assert stored["spec"]["containers"][0]["resources"]["claims"] == [
        {"name": "gpu"},
        {"name": "gpu-1", "request": "gpu-0"},
    ]


def test_priority_becomes_a_variable() -> None:
    """HAMi's library reads it from the environment; the resource exists nowhere."""
    raw = pod(container("main", {MEMORY: "5", PRIORITY: "1"}, env=[{"name": "A", "value": "b"}]))
    stored, _ = patched(raw)
    assert stored["spec"]["containers"][0]["env"] == [
        {"name": "A", "value": "b"},
        {"name": "CUDA_TASK_PRIORITY", "value": "1"},
    ]


def test_no_card_leaves_no_trace() -> None:
    """Who asks for a share of no card gets nothing, and is not kept from running."""
    stored, verdict = patched(pod(container(limits={GPU: "0", MEMORY: "5"})))
    assert stored["spec"]["containers"][0]["resources"] == {"limits": {}, "requests": {}}
    assert verdict.template is None
    assert not is_gated(stored)


def test_container_that_another_webhook_adds() -> None:
    """A second call translates what is new and keeps the notes on what was."""
    stored, _ = patched(pod(container("main", {MEMORY: "5"})))
    stored["spec"]["containers"].append(container("late", {MEMORY: "7"}))
    again, verdict = patched(stored)
    assert verdict.template is not None
    assert [item["name"] for item in again["spec"]["resourceClaims"]] == ["gpu", "gpu-1"]
    noted = json.loads(again["metadata"]["annotations"][names.ORIGINAL_RESOURCES])
    assert set(noted) == {"main", "late"}
    assert again["spec"]["schedulingGates"] == [GATE]


# Refusals and warnings


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        pytest.param(
            pod(container(limits={PERCENTAGE: "120"})), ["120", "from 0 to 100"], id="impossible"
        ),
        pytest.param(
            pod(container(), annotations={names.NODE_POLICY: "tight"}),
            ["tight", names.NODE_POLICY, "compact", "spread"],
            id="unknown policy, also without devices",
        ),
        pytest.param(
            pod(container(), annotations={names.HAMI_GPU_POLICY: "mutex"}),
            ["mutex", names.HAMI_GPU_POLICY],
            id="unknown to us",
        ),
        pytest.param(
            pod(container(limits={MEMORY: "5"}), nodeName="n"), ["spec.nodeName"], id="node is set"
        ),
        pytest.param(
            pod(container("p", {MEMORY: "5"}, securityContext={"privileged": True})),
            ["'p'", "privileged"],
            id="privileged",
        ),
        pytest.param(
            pod(container(limits={GPU: "1"}), annotations={"nvidia.com/vgpu-mode": "mig"}),
            ["hami-core"],
            id="another mode",
        ),
    ],
)
def test_refused(raw: dict[str, Any], says: list[str]) -> None:
    """The sentence tells what is wrong, where, and what is known."""
    message = refusal(raw)
    assert all(part in message for part in says), message


def test_refusal_is_a_sentence() -> None:
    """Whatever is quoted, a user can read it."""
    mode = {"nvidia.com/vgpu-mode": "x" * 100_000}
    assert len(refusal(pod(container(limits={GPU: "1"}), annotations=mode))) < 1100


def test_shares_need_consumable_capacity() -> None:
    """The API server would drop the amounts in silence and give the whole card."""
    given = context(features=Features())
    assert "DRAConsumableCapacity" in refusal(pod(container(limits={MEMORY: "5"})), given)
    assert patched(pod(container(limits={GPU: "1"})), given)[1].template is not None


def test_privileged_without_devices_passes() -> None:
    """Only the container that asks for cards must not be privileged."""
    patched(
        pod(
            container("net", securityContext={"privileged": True}),
            container("main", {MEMORY: "5"}),
        )
    )


def test_policies_of_claims_are_checked() -> None:
    """A claim, a template or a namespace that decides with an unknown policy is named."""
    wrong = {names.GPU_POLICY: "tight"}
    given = context(templates={"ours": template_of(names.DRIVER, annotations=wrong)})
    assert "tight" in refusal(pod(container(), resourceClaims=[OURS]), given)
    given = context(namespace=ObjectMeta(name="team", annotations=wrong))
    assert "namespace team" in refusal(pod(container(limits={MEMORY: "5"})), given)


def test_weights_are_checked_and_go_with_the_claim() -> None:
    """HAMi's annotation is understood; one that means nothing is refused."""
    weights = {"hami.io/device-scoring-weights": "memory=3"}
    _, verdict = patched(pod(container(limits={MEMORY: "5"}), annotations=weights))
    assert verdict.template is not None
    assert verdict.warnings == ()
    kept = verdict.template.spec.metadata.annotations
    assert kept[names.SCORING_WEIGHTS] == "memory=3"
    wrong = {"hami.io/device-scoring-weights": "speed=3"}
    said = refusal(pod(container(limits={MEMORY: "5"}), annotations=wrong))
    assert "hami.io/device-scoring-weights of pod" in said
    assert "'speed=3' cannot be read: expected slot, core or memory" in said


@pytest.mark.parametrize(
    ("limits", "annotations", "says"),
    [
        ({MEMORY: "50000"}, {}, "23028 MiB"),
        ({MEMORY: "5"}, {"nvidia.com/use-gputype": "H100"}, "NVIDIA A10G, Tesla T4"),
        ({MEMORY: "16000"}, {"nvidia.com/use-gputype": "T4"}, "15360 MiB"),
    ],
)
def test_warns(limits: dict[str, Any], annotations: dict[str, str], says: str) -> None:
    """What no card can give today is said, not refused: an autoscaler may bring one."""
    _, verdict = patched(pod(container(limits=limits), annotations=annotations))
    assert any(says in warning for warning in verdict.warnings), verdict.warnings


def test_percentage_without_cards() -> None:
    """An amount that cannot be computed is refused, with the way out."""
    raw = pod(container(limits={PERCENTAGE: "45"}))
    assert "MiB" in refusal(raw, context(cards=frozenset()))
    assert patched(raw, context(cards=frozenset({A10G})))[1].template is not None


def test_referenced() -> None:
    """What must be looked up first."""
    raw = pod(
        container(),
        resourceClaims=[OURS, {"name": "x", "resourceClaimName": "shared"}, {"name": "y"}],
    )
    assert referenced(raw) == Referenced(frozenset({"shared"}), frozenset({"ours"}))
    assert referenced(pod(container())) == Referenced(frozenset(), frozenset())


# Whatever the pod

amounts = st.sampled_from(["0", "1", "7", "45", "100", 1, 3])
resource_lists = st.dictionaries(
    st.sampled_from([GPU, MEMORY, PERCENTAGE, CORES, PRIORITY, "cpu", "memory"]), amounts
)
odd = st.dictionaries(st.sampled_from(["tty", "a/b", "x~y"]), st.booleans(), max_size=2)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """Pods with up to four containers, odd fields, and every list present or not."""
    made = [
        {**container(f"c{index}", draw(resource_lists)), **draw(odd)}
        for index in range(draw(st.integers(1, 4)))
    ]
    split = draw(st.integers(0, len(made) - 1))
    for item in made[:split]:
        if draw(st.booleans()):
            item["restartPolicy"] = "Always"
    raw = pod(*made[split:], init=tuple(made[:split]))
    raw["metadata"] |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "labels": st.sampled_from([{}, {"app": "x"}]),
                "annotations": st.sampled_from(
                    [{}, {"note": "x"}, {names.ORIGINAL_RESOURCES: "no json"}]
                ),
            },
        )
    )
    raw["spec"] |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "schedulingGates": st.sampled_from([[], [{"name": "quota"}]]),
                "resourceClaims": st.sampled_from([[], [OURS]]),
                "future": st.just({"field": [1]}),
            },
        )
    )
    return raw


HAMI = {GPU, MEMORY, PERCENTAGE, CORES, PRIORITY}


def without_our_changes(raw: dict[str, Any]) -> dict[str, Any]:
    """The pod with everything taken out that a translation may add or remove."""
    raw = copy.deepcopy(raw)
    for member, ours in (
        ("labels", {names.POD_LABEL}),
        ("annotations", {names.ORIGINAL_RESOURCES, names.EXTENDED_RESOURCES}),
    ):
        kept = {k: v for k, v in (raw["metadata"].pop(member, None) or {}).items() if k not in ours}
        raw["metadata"][member] = kept
    spec = raw["spec"]
    gates = [gate for gate in spec.pop("schedulingGates", []) if gate != GATE]
    claims = [item for item in spec.pop("resourceClaims", []) if item["name"] == OURS["name"]]
    for item in (*spec.get("initContainers", []), *spec["containers"]):
        item["resources"].pop("claims", None)
        item["env"] = [v for v in item.get("env", []) if v["name"] != "CUDA_TASK_PRIORITY"]
        for part in ("limits", "requests"):
            left = {k: v for k, v in item["resources"].get(part, {}).items() if k not in HAMI}
            item["resources"][part] = left
    return {**raw, "spec": {**spec, "schedulingGates": gates, "resourceClaims": claims}}


@given(pods())
def test_translation_keeps_the_rest(raw: dict[str, Any]) -> None:
    """No HAMi resource but "no card" is left, everything else is as it was, once is enough."""
    before = copy.deepcopy(raw)
    verdict = review_pod(raw, KNOWN)
    assert raw == before
    if isinstance(verdict, Refused):
        return
    stored = json_patch(raw, [dict(item) for item in verdict.operations])
    for item in (*stored["spec"].get("initContainers", []), *stored["spec"]["containers"]):
        for part in ("limits", "requests"):
            left = {k: v for k, v in item["resources"][part].items() if k in HAMI}
            assert set(left) <= {GPU} and str(left.get(GPU, "0")) == "0"  # noqa: PT018
        for use in item["resources"].get("claims", []):
            assert any(use["name"] == claim["name"] for claim in stored["spec"]["resourceClaims"])
    assert without_our_changes(stored) == without_our_changes(raw)
    again = review_pod(stored, KNOWN)
    assert isinstance(again, Patch)
    assert (again.operations, again.template) == ((), None)


def test_network_class_is_not_ours() -> None:
    """A class without selectors may hold anything; one that names others may not."""
    assert NETWORK_CLASS.spec.selectors
    given = context(
        templates={"ours": template_of("anything")}, classes={"anything": device_class("anything")}
    )
    assert is_gated(patched(pod(container(), resourceClaims=[OURS]), given)[0])
