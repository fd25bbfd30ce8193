"""The whole way of every pod, one after the other: created, placed, scheduled, committed.

The composition only: each step is the code that serves a real cluster, or stands for a part of
Kubernetes (`driver.simulator`).
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from driver.cli.simulation import creation, placing, scheduling
from driver.cli.simulation.advice import Adviser
from driver.cli.simulation.apiserver import Raw
from driver.cli.simulation.documents import Document
from driver.cli.simulation.inventory import machines
from driver.cli.simulation.manifests import Manifests, typed
from driver.cli.simulation.metrics import measure
from driver.cli.simulation.report import Comparison, PendingPod, Placement, Report
from driver.cli.simulation.scheduling import NotScheduled, Scheduled
from driver.cli.simulation.summary import card_uses, placement
from driver.cli.simulation.world import Rules, World
from driver.controller.pods import Refused
from driver.controller.policies import Defaults
from driver.model.core import Pod
from driver.simulator import workloads

# After a denial the controller nominates again; what is denied so often in a cluster in which
# nothing else happens will not come.
_ATTEMPTS = 3


def simulate(manifests: Manifests, rules: Rules) -> Report:
    """Play all manifests, in order; raises `ManifestError` for an inventory that is wrong."""
    world = World(manifests, machines(manifests, rules.driver), rules)
    warned: dict[str, list[str]] = {}
    before = card_uses(world)
    adviser = Adviser(world)
    outcomes = [
        _play(world, adviser, pod, warned)
        for document in manifests.workloads
        if not _has_its_place(document)
        for pod in workloads.pods(document.raw)
    ]
    placements = tuple(one for one in outcomes if isinstance(one, Placement))
    pending = tuple(one for one in outcomes if isinstance(one, PendingPod))
    cards = card_uses(world)
    return Report(
        kubernetes=rules.release.name,
        policy=f"{rules.defaults.node}/{rules.defaults.gpu}",
        metrics=measure(placements, pending, cards),
        placements=placements,
        pending=pending,
        before=before,
        cards=cards,
        warnings=(
            *_skipped(manifests.skipped),
            *_of_admission(warned),
            *_without_cards(placements),
        ),
    )


def compare(manifests: Manifests, rules: Rules, policies: Sequence[Defaults]) -> Comparison:
    """Play all manifests under each of these policies, for pods that say nothing themselves."""
    found = [simulate(manifests, replace(rules, defaults=one)) for one in policies]
    return Comparison(
        kubernetes=rules.release.name,
        simulations=tuple(
            replace(report, warnings=(*report.warnings, *_others(report))) for report in found
        ),
    )


def _others(report: Report) -> Iterator[str]:
    """What --policy did not decide about."""
    own = sum(
        bool(one.node_policy) and f"{one.node_policy}/{one.gpu_policy}" != report.policy
        for one in report.placements
    )
    if own:
        pods = "1 pod was" if own == 1 else f"{own} pods were"
        yield (
            f"{report.policy}: {pods} placed by other policies: what a claim, pod, DeviceClass or "
            "namespace says goes before --policy"
        )


def _has_its_place(document: Document) -> bool:
    """Whether this is a pod of a snapshot that is not to be placed any more."""
    if document.kind != "Pod" or not document.exists:
        return False
    pod = typed(document, Pod)
    return bool(pod.spec.node_name) or pod.finished


def _skipped(kinds: Mapping[str, int]) -> Iterator[str]:
    for kind, number in sorted(kinds.items()):
        objects = "1 object" if number == 1 else f"{number} objects"
        yield f"{objects} of kind {kind} skipped: simulate does not support this kind"


def _of_admission(warned: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Replicas are warned of the same: once is enough."""
    for warning, pods in warned.items():
        what = f"pod {pods[0]}" if len(pods) == 1 else f"{len(pods)} pods (such as {pods[0]})"
        yield f"{what}: {warning}"


def _without_cards(placements: Sequence[Placement]) -> Iterator[str]:
    """A misspelt resource must not pass for a pod that has all it asked for."""
    pods = [one.pod for one in placements if not one.devices]
    if pods:
        ask = f"pod {pods[0]} asks" if len(pods) == 1 else f"{len(pods)} pods ask"
        example = f" (such as {pods[0]})" if len(pods) > 1 else ""
        yield f"{ask} for no card of this driver{example}; a misspelt field looks the same"


def _play(
    world: World, adviser: Adviser, raw: Raw, warned: dict[str, list[str]]
) -> Placement | PendingPod:
    """One pod from its manifest to a node, or to the reason why not.

    What admission has to say besides goes to `warned`, with the pods that it is about.
    """
    if raw["metadata"].get("uid"):
        # It waits in the snapshot: admission has been, and its claims are there.
        return _outcome(world, adviser, raw, _run(world, raw))
    created = creation.create(world, raw)
    if isinstance(created, Refused):
        # It has no name yet where that is made from `generateName`.
        metadata = raw["metadata"]
        name = metadata.get("name") or metadata["generateName"] + "*"
        return PendingPod(
            namespace=metadata["namespace"], pod=name, refused=True, reason=created.message
        )
    name = created.pod["metadata"]["name"]
    for warning in created.warnings:
        warned.setdefault(warning, []).append(name)
    return _outcome(world, adviser, created.pod, _run(world, created.pod))


def _outcome(
    world: World, adviser: Adviser, pod: Raw, outcome: Scheduled | NotScheduled
) -> Placement | PendingPod:
    if isinstance(outcome, Scheduled):
        return placement(world, pod, outcome)
    metadata = pod["metadata"]
    return PendingPod(
        namespace=metadata["namespace"],
        pod=metadata["name"],
        refused=False,
        reason=outcome.reason,
        would_fit=adviser.would_fit(pod),
    )


def _run(world: World, pod: Raw) -> Scheduled | NotScheduled:
    """Placement and scheduling, again after a denial."""
    outcome = NotScheduled("it was denied its devices again and again")
    for _ in range(_ATTEMPTS):
        placed = placing.place(world, world.pod(pod))
        if gates := placed.pod["spec"].get("schedulingGates"):
            waits = ", ".join(gate["name"] for gate in gates)
            return NotScheduled(f"waits for scheduling gate {waits}")
        attempt = scheduling.schedule(world, placed.pod)
        if isinstance(attempt, Scheduled):
            return replace(attempt, why=(*placed.why, *attempt.why))
        outcome = attempt
        if not outcome.retry:
            break
    return outcome
