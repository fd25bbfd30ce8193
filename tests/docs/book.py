"""How is each command of the documentation run?

Every command stands in exactly one table here, as on its page (`quadrant` and `kubectl quadrant`
are one). What stands in no table, or on no page any more, fails `test_commands.py`. Commands of
SITE and CHART are run in the order of their table, by `tests/cluster/test_documented_commands.py`.
Files that they name lie in `desk`.
"""

from collections.abc import Mapping

import msgspec


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How a command has to end: its status, and a pattern that its output has.

    `more` is written behind it, to make it short, or to have more to look at.
    """

    status: int = 0
    shows: str = ""
    more: str = ""


RUNS = Way()
_SMALL = Way(more="--nodes 8 --decisions 2 --claims 2")

OFFLINE: Mapping[str, Way] = {
    'export PATH="$PWD/.venv/bin:$PATH"': Way(more="&& command -v quadrant"),
    "make help": Way(shows="test +Everything that needs no cluster"),
    "./hack/demo": Way(shows="four modes simulated"),
    (
        "quadrant simulate -f examples/two-by-two/inventory.yaml -f deviceclasses/gpu.yaml "
        "-f examples/two-by-two/b-node-spread-gpu-compact.yaml"
    ): RUNS,
    (
        "quadrant simulate -f inventory.yaml -f deviceclasses/gpu.yaml -f my-pods.yaml "
        "--policy compact/compact --policy spread/spread --fail-below placedPercent=95"
    ): RUNS,
    (
        "quadrant simulate --trace nodes.csv tasks.csv --policy first-fit --policy fragmentation "
        "--seed 42"
    ): Way(shows="2 nodes, 4 cards"),
}
"""Run at once, without a cluster."""

SLOW: Mapping[str, Way] = {
    "./hack/bench commit": _SMALL,
    "./hack/bench ledger": _SMALL,
    "./hack/bench plan": _SMALL,
    "./hack/bench prepare": _SMALL,
    "./hack/bench memory": _SMALL,
    "pip install .": RUNS,
    "pip install ./examples/inventory": RUNS,
    # No card of AMD's here, or no driver of graphics cards at all.
    "python -m quadrant_amdgpu": Way(more="|| true", shows=r"^\[\]|class/drm cannot be read"),
    "pip install ./examples/scorer": RUNS,
    (
        "quadrant simulate -f examples/two-by-two/inventory.yaml -f deviceclasses/gpu.yaml "
        "-f my-pods.yaml --policy compact/compact --policy frugal,compact/frugal,compact"
    ): Way(shows="frugal,compact/frugal,compact"),
}
"""Without a cluster too, but for longer, or with packages from PyPI: in this order."""

SITE: Mapping[str, Way] = {
    "hack/cluster status": Way(shows="kube-scheduler"),
    "hack/cluster logs kubelet/t4": RUNS,
    "export KUBECONFIG=$(hack/cluster kubeconfig)": Way(more="&& kubectl get nodes", shows="t4"),
    "kubectl quadrant matrix": Way(shows=r"t4 .*▒1"),
    "kubectl quadrant claims -A": Way(shows=r"default +train-0-gpu-\w+ "),
    "kubectl quadrant claims -A --sort-by score": Way(shows="train-0-gpu"),
    "kubectl quadrant claims -A -o wide": Way(shows="UUID[^$]+GPU-"),
    "kubectl quadrant topo node-1": Way(shows="node t4"),
    "kubectl quadrant doctor": Way(shows="ok +slices"),
    "kubectl quadrant migrate -f hami.yaml": Way(shows=r"\+kind: ResourceClaimTemplate"),
    "kubectl quadrant migrate -f app.yaml": Way(shows=r"\+kind: ResourceClaimTemplate"),
    "kubectl quadrant migrate -f FILE": Way(shows=r"\+kind: ResourceClaimTemplate"),
    "quadrant explain pod/train-0": Way(shows="has t4/gpu-"),
    "quadrant explain pod/train-0 -n team": Way(shows="has t4/gpu-"),
    "quadrant explain claim/train-0-gpu-x7k2p -n team": Way(shows="has t4/gpu-"),
    "kubectl quadrant explain pod/NAME -n NAMESPACE": Way(shows="has t4/gpu-"),
    "kubectl describe pod NAME -n NAMESPACE": Way(shows="DevicesChosen"),
    "kubectl -n quadrant-system get pods,lease": Way(shows="quadrant-controller"),
    "kubectl get pods -A --field-selector spec.nodeName=NODE": Way(shows="train-0"),
    (
        "kubectl get pod POD -o jsonpath='{.status.containerStatuses[*].allocatedResourcesStatus}'"
    ): Way(shows="Healthy"),
    "kubectl get resourceclaim CLAIM -o jsonpath='{.status.devices}'": Way(shows="Ready"),
    "kubectl get pod NAME -o jsonpath='{.metadata.uid}' | tr -d -": Way(shows=r"^[0-9a-f]{32}\s*$"),
    "kubectl quadrant cordon node-1/gpu-3": Way(shows="cordoned"),
    (
        "kubectl get resourceslices -o jsonpath="
        """'{range .items[*].spec.devices[?(@.taints)]}{.name}{" "}{.taints}{"\\n"}{end}'"""
    ): Way(shows="gpu-3 .*cordoned"),
    "quadrant uncordon node-1/gpu-3": Way(shows="uncordoned"),
    "kubectl quadrant cordon NODE/GPU": Way(shows="cordoned"),
    "kubectl quadrant uncordon NODE/DEVICE": Way(shows="uncordoned"),
    "kubectl apply -f pod.yaml": Way(status=1),
    "quadrant snapshot > cluster.json": RUNS,
    (
        "quadrant simulate -f cluster.json -f next-week.yaml "
        "--policy compact/compact --policy fragmentation/compact"
    ): Way(shows="fragmentation/compact"),
    "kubectl quadrant simulate -f cluster.json -f next-month.yaml": Way(shows="WHY"),
    (
        "cat > more-nodes.yaml <<'END'\n"
        "apiVersion: quadrant.dev/v1alpha1\nkind: Inventory\nnodes:\n"
        "  - {name: new-1, gpus: 8xH100-SXM}\n  - {name: new-2, gpus: 8xH100-SXM}\nEND"
    ): RUNS,
    "kubectl quadrant simulate -f cluster.json -f more-nodes.yaml -f next-month.yaml": Way(
        shows="new-2"
    ),
    "hack/cluster restart kube-scheduler": RUNS,
    "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data": Way(shows="drained"),
}
"""On a cluster where pod train-0 has part of a card of node t4."""

_UPGRADE = (
    "helm upgrade quadrant helm/quadrant --namespace quadrant-system --reset-then-reuse-values"
)
CHART: Mapping[str, Way] = {
    (
        "helm install quadrant helm/quadrant --namespace quadrant-system --create-namespace "
        "--set image.repository=REPOSITORY"
    ): Way(shows="STATUS: deployed"),
    "kubectl get resourceslices": RUNS,
    "kubectl apply -f examples/two-by-two/a-node-compact-gpu-compact.yaml": Way(shows="created"),
    # With rules, so that there are some to look at below.
    _UPGRADE: Way(
        more='--set-json \'node.attributeRules=[{"match":"true","attributes":{"tier":"gold"}}]\'',
        shows="REVISION: 2",
    ),
    (
        f"{_UPGRADE} --set metrics.node=true --set metrics.podMonitor.create=true "
        "--set metrics.rules.create=true --set metrics.dashboard.create=true --set-json "
        """'metrics.from=[{"namespaceSelector":{"matchLabels":"""
        """{"kubernetes.io/metadata.name":"monitoring"}}}]'"""
    ): Way(shows="REVISION: 3"),
    "kubectl label node NODE quadrant.dev/gpus=true nvidia.com/gpu.deploy.device-plugin=false": Way(
        shows="labeled"
    ),
    f"{_UPGRADE} --set-string 'node.nodeSelector.quadrant\\.dev/gpus=true'": Way(
        shows="REVISION: 4"
    ),
    "kubectl apply -n NAMESPACE -f examples/quota.yaml": Way(shows="created"),
    "kubectl describe quota -n NAMESPACE gpus": Way(shows="deviceclass"),
    (
        "kubectl -n quadrant-system get configmap quadrant-attribute-rules "
        r"-o jsonpath='{.data.rules\.yaml}' | cat -n"
    ): Way(shows=r'^ +\d+\t.*"tier"'),
    """kubectl -n quadrant-system patch secret quadrant-webhooks -p '{"data":null}'""": Way(
        shows="patched"
    ),
    "kubectl delete deviceclass -l app.kubernetes.io/name=quadrant": Way(shows="deleted"),
    "kubectl delete mutatingwebhookconfiguration quadrant-pods": Way(shows="deleted"),
    "kubectl get pods -A -l quadrant.dev/placed": RUNS,
    "helm uninstall quadrant --namespace quadrant-system": Way(shows="uninstalled"),
    "kubectl delete resourceclaimtemplates -A -l quadrant.dev/translated": RUNS,
    "kubectl delete devicetaintrules -l quadrant.dev/held": RUNS,
    (
        "kubectl patch pod NAME -n NAMESPACE --type=json "
        """-p '[{"op":"remove","path":"/spec/schedulingGates"}]'"""
    ): Way(shows="patched"),
    "kubectl delete node NODE": Way(shows="deleted"),
}
"""On a cluster with one node, pod train-0 behind our gate, and nothing of Quadrant in it."""

_BUILT = "tests/helm/test_install.py::release"
_HACK_CLUSTER = "tests/cluster/test_hack_cluster.py"
_OWN = "tests/helm/test_installed_settings.py::test_certificates_become_ones_own_again"
_PAGES = "tests/hack/test_reference.py::test_the_pages_are_as_the_code_makes_them"
ELSEWHERE: Mapping[str, str] = {
    "buildah bud -t REPOSITORY:0.1.0 --timestamp 0 .": _BUILT,
    (
        "kubectl -n quadrant-system rollout status "
        "deployment/quadrant-controller daemonset/quadrant-node"
    ): "tests/helm/test_install.py::test_one_leader_gets_the_commits",
    "ctr --address CONTAINERD_SOCKET --namespace k8s.io images import --no-unpack FILE": _BUILT,
    "D=/var/lib/kubelet/plugins/gpu.quadrant.dev": (
        "tests/node/health/test_monitor.py::test_simulated_faults_come_and_go_with_their_lines"
    ),
    r"printf 'gpu-1 xid 79\ngpu-2 ecc 3\n' > $D/faults": (
        "tests/node/health/test_monitor.py::test_simulated_faults_come_and_go_with_their_lines"
    ),
    "rm $D/faults": (
        "tests/node/health/test_monitor.py::test_simulated_faults_come_and_go_with_their_lines"
    ),
    (
        "kubectl -n quadrant-system get secret quadrant-webhooks "
        r"-o 'jsonpath={.data.trusted\.crt}' | base64 -d > both.crt"
    ): _OWN,
    "cat ca.crt >> both.crt": _OWN,
    (
        f"{_UPGRADE} --wait --force-conflicts --set certificates.secretName=quadrant-serving "
        '--set certificates.caBundle="$(base64 -w0 both.crt)"'
    ): _OWN,
    f'{_UPGRADE} --set certificates.caBundle="$(base64 -w0 ca.crt)"': _OWN,
    "hack/cluster up": f"{_HACK_CLUSTER}::test_two_nodes_come_up_run_pods_and_leave_nothing",
    "hack/cluster up --name cp --control-plane-only": "tests/helm/test_device_plugin.py::cluster",
    "hack/cluster kill kube-apiserver --signal STOP": (
        f"{_HACK_CLUSTER}::test_components_are_killed_frozen_and_restarted"
    ),
    "hack/cluster down": f"{_HACK_CLUSTER}::test_two_nodes_come_up_run_pods_and_leave_nothing",
    "kubectl apply --dry-run=server -o yaml": (
        "tests/cluster/test_manifests.py::test_every_manifest_is_accepted"
    ),
    ".venv/bin/python -m hack.pictures": (
        "tests/hack/test_pictures.py::test_the_picture_is_as_its_code_draws_it"
    ),
    "python -m hack.reference": _PAGES,
    ".venv/bin/python -m hack.reference": _PAGES,
}
"""What another test does already: its file and function."""

_VENDOR = "the vendor's program, for a real card; hack/device-check reads the same"
_SUITE = "it is what runs this test"
EXCUSED: Mapping[str, str] = {
    "./hack/test": _SUITE,
    "./hack/test --fast": _SUITE,
    "./hack/demo --cluster": "minutes; tests/cluster/test_modes.py runs the same four manifests",
    "make lock": "it resolves every dependency anew",
    "./hack/bench start": "half a minute, and there is no less of it",
    "./hack/bench schedule": "minutes on a control plane with 500 nodes",
    "./hack/bench all -o json": "all of the above, `schedule` included",
    ".venv/bin/python -m hack.pictures 12": "a minute; the same code as for one picture",
    ".venv/bin/pytest tests/cluster/test_failover.py -o log_cli=true -o log_cli_level=INFO": _SUITE,
    "hack/cluster build": "hack/test does it before the tests on clusters",
    "hack/kind up 1.34": "needs Docker",
    "hack/kind config 1.34": "needs Docker",
    "go mod tidy": "rewrites hack/kubernetes/go.mod",
    "docker build -t REPOSITORY:0.1.0 .": "no Docker here; buildah builds from the same file",
    "docker push REPOSITORY:0.1.0": "needs a registry",
    "buildah push REPOSITORY:0.1.0": "needs a registry",
    "pipx install .": "pip's twin, of which there is a test",
    "kubectl -n quadrant-system port-forward deploy/quadrant-controller 8080": (
        "runs until it is ended; tests/cluster/test_commands.py asks the page itself"
    ),
    "kubectl -n NAMESPACE port-forward deploy/quadrant-controller 8080": (
        "runs until it is ended; tests/cluster/test_commands.py asks the page itself"
    ),
    "xdg-open http://localhost:8080/ui": "needs a desktop; tests/cli looks at the page in Chromium",
    "nvidia-smi topo -m": _VENDOR,
    "nvidia-smi -q": _VENDOR,
    "nvidia-smi -q -x": _VENDOR,
    "nvidia-smi -L": _VENDOR,
    "nvidia-smi -i <UUID> -mig 0": _VENDOR,
}
"""What nobody runs, and why."""

NAMED: frozenset[str] = frozenset(
    {
        "quadrant --install-completion",
        "quadrant simulate --trace",
        "quadrant simulate --policy",
        "kubectl quadrant simulate --policy compact --policy spread",
        "kubectl quadrant snapshot --redact",
        "kubectl quadrant explain …",
        "kubectl delete pod --force",
        "helm upgrade ... --set inventory.name=amdgpu",
        "./hack/trace --variant",
    }
)
"""Calls that are spoken of, not written out. What they name has to exist, as of plain words."""
