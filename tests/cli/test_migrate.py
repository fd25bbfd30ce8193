"""`migrate`: the translation of admission, put into manifests, in the place where things stood."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from driver.cli.migrate import RefusedError
from driver.cli.migration import files
from driver.cli.migration.conversion import Rules, convert
from driver.cli.simulation.documents import ManifestError
from driver.controller.pods import Patch, ReviewContext, review_pod
from driver.controller.policies import Defaults
from driver.model.api import ObjectMeta
from driver.policy.registry import BUILT_IN
from driver.simulator.releases import release
from driver.wire.encode import builtins
from tests.cli.conftest import ROOT, TWO_BY_TWO, Quadrant
from tests.cli.livecluster import invoke

File = Callable[[str], Path]
HAMI = """\
# What this is for.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web  # its name
  namespace: demo
spec:
  template:
    metadata:
      labels: {app: web}
      annotations:
        hami.io/gpu-scheduler-policy: binpack
        hami.io/node-scheduler-policy: spread
        nvidia.com/use-gputype: A10G
        prometheus.io/scrape: "true"
    spec:
      schedulerName: hami-scheduler
      containers:
        - name: main
          command:
            - |
              echo "nvidia.com/gpu: 1"
          resources:
            limits:
              nvidia.com/gpu: 1
              nvidia.com/gpumem: "7500"
              cpu: 2  # two of them
            requests: {cpu: 1}
      # the end
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  containers:
  - {name: main, resources: {limits: {nvidia.com/gpu: 1}}}
"""
SERVICE = "apiVersion: v1\nkind: Service  # as it is\nmetadata:   {name: s}\n"
RULES = Rules(release=release("1.37"), registry=BUILT_IN, device_class="gpu.quadrant.dev")


def documents(text: str) -> list[Any]:
    """All documents of a file."""
    return list(yaml.safe_load_all(text))


def migrated(quadrant: Quadrant, path: Path, *more: str) -> str:
    """The whole file, rewritten."""
    return quadrant("migrate", "-f", path, "-o", "yaml", *more).stdout


def test_everything_else_stays_as_written(quadrant: Quadrant, file: File) -> None:
    """Lines go and come; comments, order and quoting of all others are as they were."""
    text = migrated(quadrant, file(HAMI))
    template, workload = documents(text)
    assert template["metadata"] == {"name": "web-gpu", "namespace": "demo"}
    kept = [line for line in HAMI.splitlines() if "nvidia.com" not in line or "echo" in line]
    kept = [line for line in kept if "hami" not in line]
    head, _, rest = text.partition("---\n")
    assert head.startswith(kept.pop(0))
    assert [line for line in rest.splitlines() if line in kept] == kept
    for comment in ("# What this is for.", "# its name", "# two of them", "# the end"):
        assert comment in text
    spec = workload["spec"]["template"]["spec"]
    assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "web-gpu"}]
    assert spec["containers"][0]["resources"] == {
        "limits": {"cpu": 2},
        "requests": {"cpu": 1},
        "claims": [{"name": "gpu", "request": "gpu-0"}],
    }
    assert "schedulerName" not in spec
    annotations = workload["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"prometheus.io/scrape": "true"}


def test_the_template_is_that_of_admission(quadrant: Quadrant, file: File) -> None:
    """Requests, selectors, amounts and policies are what the webhook makes of the same pod."""
    template, _ = documents(migrated(quadrant, file(HAMI)))
    (workload,) = documents(HAMI)
    pod = workload["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"]["name"] = "web"
    context = ReviewContext(
        namespace=ObjectMeta(name="demo"),
        defaults=Defaults(node="compact", gpu="compact"),
        features=release("1.37").features,
    )
    verdict = review_pod(pod, context)
    assert isinstance(verdict, Patch)
    assert verdict.template is not None
    assert template["spec"] == builtins(verdict.template.spec)
    assert template["spec"]["metadata"]["annotations"] == {
        "quadrant.dev/gpu-policy": "binpack",
        "quadrant.dev/node-policy": "spread",
    }


@pytest.mark.parametrize("mode", sorted(path.name for path in TWO_BY_TWO.glob("[abcd]-*.yaml")))
def test_pods_go_where_they_went(quadrant: Quadrant, tmp_path: Path, mode: str) -> None:
    """The rewritten manifests lead to the same cards as HAMi's own, under all four policies."""
    rewritten = tmp_path / mode
    rewritten.write_text(migrated(quadrant, TWO_BY_TWO / mode), "utf-8")
    base = ("-f", TWO_BY_TWO / "inventory.yaml", "-f", ROOT / "deviceclasses" / "gpu.yaml")

    def placed(path: Path) -> list[Any]:
        report = json.loads(quadrant("simulate", *base, "-f", path, "-o", "json").stdout)
        return [
            [one["node"], one["nodePolicy"], one["gpuPolicy"]]
            + [(d["device"], d["memoryMiB"], d["cores"]) for d in one["devices"]]
            for one in report["placements"]
        ]

    before = placed(TWO_BY_TWO / mode)
    assert before
    assert placed(rewritten) == before


def test_what_is_rewritten_is_left_alone(quadrant: Quadrant, file: File) -> None:
    """Once is enough."""
    again = file(migrated(quadrant, file(HAMI)))
    done = invoke(["migrate", "-f", str(again)])
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "nothing to rewrite" in done.stderr


def test_the_diff_can_be_applied(quadrant: Quadrant, tmp_path: Path) -> None:
    """`patch -p1` makes of the file what `-o yaml` prints."""
    patch = shutil.which("patch")
    if patch is None:
        pytest.skip("no patch: install it (apt-get install patch)")
    path = tmp_path / "web.yaml"
    path.write_text(HAMI, "utf-8")
    expected = migrated(quadrant, path)
    diff = quadrant("migrate", "-f", path).stdout
    assert diff.startswith(f"--- a{path}\n+++ b{path}\n")
    subprocess.run([patch, "-p1", str(path)], input=diff, text=True, check=True,
                   capture_output=True)  # fmt: skip
    assert path.read_text("utf-8") == expected


KINDS = [
    ("apps/v1", "Deployment", ("spec", "template")),
    ("apps/v1", "ReplicaSet", ("spec", "template")),
    ("apps/v1", "StatefulSet", ("spec", "template")),
    ("apps/v1", "DaemonSet", ("spec", "template")),
    ("batch/v1", "Job", ("spec", "template")),
    ("batch/v1", "CronJob", ("spec", "jobTemplate", "spec", "template")),
    ("v1", "Pod", ()),
]


@pytest.mark.parametrize(("version", "kind", "path"), KINDS)
def test_every_kind_with_pods(  # noqa: PLR0917 - one for each column
    quadrant: Quadrant, file: File, version: str, kind: str, path: tuple[str, ...]
) -> None:
    """Wherever the pod is, its containers get the claim."""
    made: Any = {"spec": {"containers": [yaml.safe_load(POD)["spec"]["containers"][0]]}}
    for part in reversed(path):
        made = {part: made}
    made |= {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}
    template, found = documents(migrated(quadrant, file(yaml.safe_dump(made))))
    assert template["kind"] == "ResourceClaimTemplate"
    for part in path:
        found = found[part]
    assert found["spec"]["containers"][0]["resources"] == {
        "claims": [{"name": "gpu", "request": "gpu-0"}]
    }


def test_lists_and_json(quadrant: Quadrant, tmp_path: Path) -> None:
    """What `kubectl get -o yaml` and `-o json` print, too; JSON becomes a List."""
    pod = yaml.safe_load(POD)
    path = tmp_path / "list.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [pod]}), "utf-8")
    template, listed = documents(migrated(quadrant, path))
    assert template["metadata"]["name"] == "one-gpu"
    assert listed["items"][0]["spec"]["resourceClaims"]
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(pod), "utf-8")
    found = json.loads(migrated(quadrant, path))
    assert [one["kind"] for one in found["items"]] == ["ResourceClaimTemplate", "Pod"]


def test_objects_of_other_kinds_stay(quadrant: Quadrant, file: File) -> None:
    """A file of many documents keeps those that ask for nothing, to the last character."""
    text = migrated(quadrant, file(f"{SERVICE}---\n{POD}---\n{SERVICE}"))
    assert text.startswith(f"{SERVICE}---\n")
    assert text.endswith(f"---\n{SERVICE}")


def test_anchors_are_written_anew(file: File) -> None:
    """A change in one place would be one in several: comments are lost, and that is said."""
    text = POD.replace("{limits: {nvidia.com/gpu: 1}}", "&r {limits: {nvidia.com/gpu: 1}}")
    text += "  - {name: other, resources: *r}\n"
    done = invoke(["migrate", "-f", str(file(text)), "-o", "yaml"])
    assert done.exit_code == 0
    assert "is written anew, comments in it are lost: the file has anchors" in done.stderr
    template, pod = documents(done.stdout)
    assert len(template["spec"]["spec"]["devices"]["requests"]) == 2
    assert [one["resources"]["claims"][0]["request"] for one in pod["spec"]["containers"]] == [
        "gpu-0", "gpu-1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("{limits: {nvidia.com/gpu: 1}}", "{limits: {nvidia.com/gpu: 1, nvidia.com/priority: 1}}"),
         "container main: nvidia.com/priority becomes CUDA_TASK_PRIORITY"),
        (("{name: one}", "{name: one, annotations: {nvidia.com/numa-bind: 'true'}}"),
         "nvidia.com/numa-bind is dropped: every container has one card"),
        (("{name: one}", "{name: one, annotations: {nvidia.com/vgpu-mode: hami-core}}"),
         "nvidia.com/vgpu-mode is dropped"),
        (("spec:", "spec:\n  schedulerName: hami-scheduler"), "schedulerName hami-scheduler is"),
        (("spec:", "spec:\n  nodeSelector: {gpu: 'on'}"), "nodeSelector gpu is kept"),
        (("{name: main,", "{name: main, env: [{name: GPU_CORE_UTILIZATION_POLICY, value: force}],"),
         "container main: GPU_CORE_UTILIZATION_POLICY is kept, but only HAMi's library reads it"),
    ],
)  # fmt: skip
def test_what_is_not_kept_is_said(file: File, change: tuple[str, str], said: str) -> None:
    """With the object's name, on stderr; the object is rewritten all the same."""
    done = invoke(["migrate", "-f", str(file(POD.replace(*change, 1))), "-o", "yaml"])
    assert done.exit_code == 0
    assert f"Pod one: {said}" in done.stderr
    assert done.stdout.count("ResourceClaimTemplate\n") == 1


def test_numa_binding_of_several_cards_is_a_constraint(file: File) -> None:
    """HAMi prefers, a constraint demands: that is said."""
    text = POD.replace("gpu: 1", "gpu: 2").replace(
        "{name: one}", "{name: one, annotations: {nvidia.com/numa-bind: 'true'}}"
    )
    done = invoke(["migrate", "-f", str(file(text)), "-o", "yaml"])
    assert "becomes a constraint" in done.stderr
    (template, _) = documents(done.stdout)
    (constraint,) = template["spec"]["spec"]["devices"]["constraints"]
    assert constraint["matchAttribute"] == "resource.kubernetes.io/numaNode"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("{name: one}", "{name: one, annotations: {nvidia.com/vgpu-mode: mig}}"), "for 'mig'"),
        (("{name: one}", "{name: one, annotations: {hami.io/gpu-scheduler-policy: tight}}"),
         "annotation hami.io/gpu-scheduler-policy"),
        (("gpu: 1", "gpu: 1, nvidia.com/gpumem-percentage: 50"), "no card that the pod allows"),
        (("spec:", "spec:\n  nodeName: n"), "sets spec.nodeName"),
        (("{name: main,", "{name: main, securityContext: {privileged: true},"), "is privileged"),
        (("gpu: 1", "gpu: 99"), "from 0 to 32"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(file: File, change: tuple[str, str], reason: str) -> None:
    """The object stays as it is, the others are rewritten, and the exit status tells."""
    text = POD.replace(*change, 1)
    done = invoke(["migrate", "-f", str(file(f"{text}---\n{POD}")), "-o", "yaml"])
    assert done.exit_code == 1
    assert isinstance(done.exception, RefusedError)
    assert "Pod one: not rewritten: " in done.stderr
    assert reason in done.stderr.replace("\n", " ")
    assert done.stdout.startswith(text)
    assert done.stdout.count("kind: ResourceClaimTemplate\n") == 1


def test_percentages_need_to_know_the_cards(quadrant: Quadrant, file: File) -> None:
    """An inventory says of what they are a part."""
    path = file(POD.replace("gpu: 1", "gpu: 1, nvidia.com/gpumem-percentage: 50"))
    inventory = str(TWO_BY_TWO / "inventory.yaml")
    template, _ = documents(migrated(quadrant, path, "--inventory", inventory))
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    amounts = [one["capacity"]["requests"]["memory"] for one in request["firstAvailable"]]
    assert amounts == ["7680Mi", "11514Mi"]


def test_other_kinds_that_speak_of_cards(file: File) -> None:
    """What is not rewritten though it asks for cards is named; so are quotas that count no more."""
    text = (
        "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: r}\n"
        "spec: {head: {limits: {nvidia.com/gpu: 1}}}\n---\n"
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\n"
        "spec: {hard: {requests.nvidia.com/gpu: 4}}\n"
    )
    done = invoke(["migrate", "-f", str(file(text))])
    assert done.exit_code == 0
    assert done.stdout == ""
    said = " ".join(done.stderr.split())
    assert "RayCluster r: objects of kind RayCluster are not rewritten" in said
    assert "ResourceQuota q: spec.hard.requests.nvidia.com/gpu does not count claims" in said


def test_annotations_in_the_wrong_place(file: File) -> None:
    """A policy on the workload says nothing, with HAMi as here."""
    text = HAMI.replace(
        "  namespace: demo", "  annotations: {hami.io/gpu-scheduler-policy: spread}"
    )
    done = invoke(["migrate", "-f", str(file(text))])
    assert "belongs to spec.template.metadata.annotations" in " ".join(done.stderr.split())


def test_a_block_of_text_at_the_end_stays(file: File) -> None:
    """What is added comes behind its last line, and before what follows."""
    text = POD.replace("  - {name: main, resources: {limits: {nvidia.com/gpu: 1}}}\n", "").rstrip()
    text += """
  - name: main
    resources:
      limits:
        nvidia.com/gpu: 1
    command:
    - sh
    - |
      # not a comment
      echo done
  # a comment of the pod's
  restartPolicy: Never
"""
    done = invoke(["migrate", "-f", str(file(text)), "-o", "yaml"])
    assert done.stderr == ""
    _, pod = documents(done.stdout)
    assert pod["spec"]["containers"][0]["command"][1] == "# not a comment\necho done\n"
    assert "  # a comment of the pod's\n  restartPolicy: Never\n" in done.stdout
    last = "      echo done\n"
    moved = text.replace("  # a comment of the pod's\n  restartPolicy: Never\n", "")
    assert moved.endswith(last)
    done = invoke(["migrate", "-f", str(file(moved + "---\n" + SERVICE)), "-o", "yaml"])
    assert done.stderr == ""
    assert f"{last}  resourceClaims:\n" in done.stdout
    assert done.stdout.endswith(f"---\n{SERVICE}")


@pytest.mark.parametrize("text", ["{{ .Values.x }}: 1: 2\n", "- 1\n", "just words\n"])
def test_what_is_no_manifest(quadrant: Quadrant, file: File, text: str) -> None:
    """One sentence that names the file."""
    with pytest.raises(ManifestError, match=r"manifest\.yaml"):
        quadrant("migrate", "-f", file(text))


def test_a_file_without_a_last_line_end(quadrant: Quadrant, file: File) -> None:
    """What is added at the end stands on lines of its own."""
    text = "kind: Pod\napiVersion: v1\nmetadata: {name: x}\nspec:\n  containers:\n"
    text += "  - name: main\n    resources:\n      limits:\n        nvidia.com/gpu: 1"
    _, pod = documents(migrated(quadrant, file(text)))
    assert pod["spec"]["resourceClaims"]


WORDS = st.sampled_from(["a", "b c", "# no comment", "1", "true", "", "it's", "x: y", "- z", "é"])
VALUES = st.recursive(
    st.one_of(WORDS, st.integers(-5, 5), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=8,
)
ASKS = st.dictionaries(
    st.sampled_from(["nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores", "cpu"]),
    st.sampled_from([1, "2", 50]),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Pods written in any style, with any other fields."""
    containers = [
        {"name": f"c{number}", "args": draw(VALUES), "resources": {"limits": draw(ASKS)}}
        for number in range(draw(st.integers(1, 3)))
    ]
    spec = {"x": draw(VALUES), "containers": containers, "y": draw(VALUES)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    style = draw(st.sampled_from([None, False, True]))
    return yaml.dump(
        pod,
        Dumper=_NoAliases,
        default_flow_style=style,
        indent=draw(st.integers(2, 6)),
        width=draw(st.sampled_from([20, 80, 1000])),
        sort_keys=draw(st.booleans()),
        allow_unicode=True,
    )


class _NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


@given(text=texts())
def test_any_style_says_the_same_afterwards(text: str) -> None:
    """In place or anew: what comes out is the object with its claim, and nothing else."""
    done = files.rewrite("f", text, lambda raw: convert(raw, RULES))
    if done.before == done.after:
        return
    expected = convert(files._without_nulls(yaml.safe_load(text)), RULES)
    template, pod = documents(done.after)
    assert template == expected.template
    assert files._without_nulls(pod) == files._without_nulls(expected.raw)
