"""The chart on a real cluster: installed, used, upgraded, rolled back, and gone without a trace.

Takes minutes: the image is built first. The tests build on one release, in their order.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import history
from tests.helm import audit
from tests.helm.burst import Burst
from tests.helm.chart import NAMESPACE, Object
from tests.helm.release import MARKS, Release, cluster
from tests.helm.reviews import Reviews

pytestmark = MARKS

CONTROLLERS = "app.kubernetes.io/component=controller"
PLUGINS = "app.kubernetes.io/component=node"
FORGOTTEN_LATE_S = 1.0
ACCOUNT = f"system:serviceaccount:{NAMESPACE}"

# Run in the plugin's pod with its own token: what the API server says to slices of this and that.
_PROBE = """
import json, os, ssl, sys, urllib.error, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
tls = ssl.create_default_context(cafile=folder + "/ca.crt")
tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
spec = {"driver": sys.argv[1], "nodeName": sys.argv[2], "devices": [],
        "pool": {"name": sys.argv[3], "generation": 1, "resourceSliceCount": 2}}
body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"generateName": "probe-"}, "spec": spec}
host = os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"]
request = urllib.request.Request(
    "https://" + host + "/apis/resource.k8s.io/v1/resourceslices?dryRun=All",
    data=json.dumps(body).encode(),
    headers={"Authorization": "Bearer " + open(folder + "/token").read(),
             "User-Agent": sys.argv[4],
             "Content-Type": "application/json"})
try:
    print(urllib.request.urlopen(request, context=tls).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


@pytest.fixture(scope="module")
def release() -> Iterator[Release]:
    """The chart on a cluster of two nodes."""
    with cluster("chart", nodes="one=4xT4,two=4xT4") as made:
        made.install()
        yield made


@pytest.fixture(scope="module")
def judge(release: Release) -> history.Judge:
    """Goes through all that happened to claims."""
    return history.Judge(release.state["etcd"])


def burst(release: Release, name: str) -> Burst:
    """Pods with a card of their own, with a share in HAMi's words, and with memory alone."""
    asked = ({"gpu": 1}, {"gpu": 1, "gpumem": 7500}, {"gpumem": 3000})
    return Burst(release.state, [release.spec(**limits) for limits in asked], name=name)


def reviews(release: Release) -> Reviews:
    """Whether pods are looked at, all the time."""
    return Reviews(release.state, release.spec(gpumem=3000))


def test_one_leader_gets_the_commits(release: Release) -> None:
    """One of the two replicas is labelled, and the commit Service leads to it alone."""
    release.settle()
    assert len(release.pods(CONTROLLERS)) == 2
    leader = release.pods()[release.leader()]
    release.wait(
        "the Service to lead to it",
        lambda: _endpoints(release, "quadrant-commit") == {leader["status"]["podIP"]},
    )
    assert len(_endpoints(release, "quadrant-pods")) == 2


def _endpoints(release: Release, service: str) -> set[str]:
    slices = release.get(
        "-n", NAMESPACE, "endpointslices", "-l", f"kubernetes.io/service-name={service}"
    )
    return {
        address
        for one in slices
        for endpoint in one.get("endpoints") or []
        if endpoint["conditions"].get("ready")
        for address in endpoint["addresses"]
    }


def test_pods_get_cards(release: Release) -> None:
    """A whole card by the extended resource, and a part of one in HAMi's words."""
    assert "QUADRANT_DEVICE_" in release.run_pod("whole", gpu=1)
    assert "CUDA_DEVICE_MEMORY_LIMIT_0=7500m" in release.run_pod("share", gpu=1, gpumem=7500)
    claims = release.get("resourceclaims")
    assert len(claims) == 2
    assert all(claim["status"]["allocation"] for claim in claims)


def test_plugins_write_the_status_of_their_claims(release: Release) -> None:
    """With the rights of their own account, which are bound to their own node."""

    def ready() -> list[str]:
        return [
            condition["status"]
            for claim in release.get("resourceclaims")
            for device in claim["status"].get("devices", ())
            for condition in device["conditions"]
        ]

    release.wait("devices to be ready", lambda: ready() == ["True", "True"])


@pytest.mark.parametrize(
    ("driver", "own_node", "own_pool", "answer"),
    [
        ("gpu.quadrant.dev", True, True, "201"),
        ("gpu.quadrant.dev", False, True, "may write the slices of that node only"),
        ("gpu.quadrant.dev", True, False, "may write the pool of that name only"),
        ("gpu.example.com", True, True, "may write slices of the driver gpu.quadrant.dev only"),
    ],
)
def test_a_plugin_is_bound_to_its_node(
    release: Release, driver: str, *, own_node: bool, own_pool: bool, answer: str
) -> None:
    """With its own token it can write slices of its own node, pool and driver, and no other."""
    name, plugin = next(iter(release.pods(PLUGINS).items()))
    here = plugin["spec"]["nodeName"]
    (there,) = {node["name"] for node in release.state["nodes"]} - {here}
    node, pool = (here if own else there for own in (own_node, own_pool))
    python = ("/opt/quadrant/bin/python", "-c", _PROBE, driver, node, pool, audit.PROBE)
    assert answer in release.kubectl("-n", NAMESPACE, "exec", name, "--", *python)


def test_the_controller_only_probes(release: Release) -> None:
    """It may ask what the API server keeps of a class, and cannot make one."""
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "x"}}
    create = ("create", "-f", "-", f"--as={ACCOUNT}:quadrant-controller")
    given = json.dumps(body | {"spec": {}})
    release.kubectl(*create, "--dry-run=server", given=given)
    assert "in dry runs only" in release.refused(*create, given=given)


def test_the_other_replica_takes_over(release: Release, judge: history.Judge) -> None:
    """The leader's pod goes under a burst: every review is answered, all pods get their cards.

    Services lead to the pod a little longer than it is wanted, as kube-proxy would have it.
    """
    release.settle()
    before = len(release.unanswered())
    with burst(release, "takeover") as pods, reviews(release) as asked:
        for _ in range(2):
            gone = release.leader()
            release.wait("pods to come and go", more(pods, 5))
            with release.frozen("kube-controller-manager"):
                release.kubectl("-n", NAMESPACE, "delete", "pod", gone, "--wait=false")
                time.sleep(FORGOTTEN_LATE_S)
            release.wait("another leader", other_leader(release, gone))
            release.wait("pods to come and go", more(pods, 5))
            release.settle()
    assert pods.wrongs == []
    assert asked.wrongs == []
    assert release.unanswered()[before:] == []
    assert judge.wrongs(history.devices(release.get("resourceslices"))) == []


def other_leader(release: Release, gone: str) -> Callable[[], bool]:
    """Whether another pod leads by now."""
    return lambda: release.leader() not in {"", gone}


def more(pods: Burst, count: int) -> Callable[[], bool]:
    """Whether so many more have run since this call; or something has gone wrong."""
    wanted = pods.done + count
    return lambda: pods.done >= wanted or bool(pods.wrongs)


def test_upgrade_and_rollback_under_a_burst(release: Release, judge: history.Judge) -> None:
    """Pods, cards and trust are untouched, forth and back; pods come and go all through it."""
    before, lost = _untouched(release), len(release.unanswered())
    with burst(release, "upgrade") as pods, reviews(release) as asked:
        release.wait("pods to come and go", more(pods, 5))
        release.upgrade(controller={"replicas": 2, "settings": {"defaults": {"gpu": "spread"}}},
                        node={"settings": {"parallelClaims": 4}})  # fmt: skip
        release.settle()
        release.wait("pods to come and go", more(pods, 5))
        release.rollback()
        release.settle()
        release.wait("pods to come and go", more(pods, 5))
    assert pods.wrongs == []
    assert asked.wrongs == []
    assert _untouched(release) == before
    assert release.unanswered()[lost:] == []
    assert judge.wrongs(history.devices(release.get("resourceslices"))) == []
    assert judge.allocations > pods.done


def _untouched(release: Release) -> Object:
    """What no upgrade may change."""
    hooks = release.get("mutatingwebhookconfigurations")
    return {
        "pods": {
            pod["metadata"]["uid"]: pod["status"]["containerStatuses"][0]["restartCount"]
            for pod in release.get("pods")
        },
        "slices": {one["metadata"]["uid"] for one in release.get("resourceslices")},
        "trust": [hook["webhooks"][0]["clientConfig"]["caBundle"] for hook in hooks],
    }


def test_nothing_was_forbidden(release: Release) -> None:
    """In all that was done so far no account of the release met a right that it lacks.

    What follows is not counted: an uninstall takes the rights away while pods still end.
    """
    accounts = {event["user"]["username"] for event in audit.requests(release.state)}
    assert accounts == {f"{ACCOUNT}:quadrant-controller", f"{ACCOUNT}:quadrant-node"}
    assert audit.forbidden(release.state) == []


def test_uninstall_leaves_nothing(release: Release) -> None:
    """By the commands of docs/install.md, in the order in which they stand there."""
    release.kubectl("delete", "mutatingwebhookconfiguration", "quadrant-pods")
    release.kubectl("delete", "pods", "-A", "-l", "quadrant.dev/placed", "--now")
    release.wait("claims to go", lambda: not release.get("resourceclaims"))
    release.uninstall()
    release.kubectl("delete", "resourceclaimtemplates", "-A", "-l", "quadrant.dev/translated")
    release.kubectl("delete", "devicetaintrules", "-l", "quadrant.dev/held")
    kinds = "leases,secrets,services,pods,roles,rolebindings,serviceaccounts,deployments,daemonsets"
    more_kinds = "configmaps,networkpolicies,poddisruptionbudgets,endpointslices"
    cluster_kinds = (
        "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,deviceclasses,"
        "validatingwebhookconfigurations,validatingadmissionpolicies,devicetaintrules,"
        "validatingadmissionpolicybindings"
    )
    everything = f"{kinds},{more_kinds}"
    release.wait("its objects to go", lambda: not _named(release, "-n", NAMESPACE, everything))
    assert _named(release, cluster_kinds) == []
    assert release.get("-A", "resourceclaimtemplates") == []
    release.wait("the slices to go", lambda: not release.get("resourceslices"))


def _named(release: Release, *arguments: str) -> list[str]:
    found = release.get(*arguments)
    return [
        f"{item['kind']}/{item['metadata']['name']}"
        for item in found
        if "quadrant" in item["metadata"]["name"]
    ]


def test_uninstall_leaves_on_the_nodes_what_the_documentation_says(release: Release) -> None:
    """The plugin's state, in its folder; no CDI file, no socket, nothing that claims anything."""
    for node in release.state["nodes"]:
        state = Path(node["plugins_dir"]) / "gpu.quadrant.dev"
        assert list(Path(node["plugins_dir"]).iterdir()) == [state]
        left = [path for path in state.rglob("*") if path.is_socket() or "metadata" in path.parts]
        assert [path for path in left if not path.is_dir()] == []
        assert list(Path(node["registry_dir"]).iterdir()) == []
        assert list(Path(node["cdi_dir"]).iterdir()) == []
