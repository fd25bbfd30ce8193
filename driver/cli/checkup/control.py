"""Does somebody lead, can the API server reach the webhooks, and do the versions agree?"""

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from cryptography import x509

from driver.cli.checkup.devices import ready
from driver.cli.checkup.evidence import COMMIT, CONFIGS, LEASE, PODS, POLICIES, Evidence
from driver.cli.checkup.finding import Finding, fail, ok, skip, warn
from driver.cli.checkup.objects import Webhook, WebhookConfiguration
from driver.kube.lease import Lease
from driver.model import names
from driver.model.core import Pod

_API, _LEASE, _LEADER, _VERSIONS, _GATED, _POLICY, _TRIAL = (
    "kubernetes",
    "lease",
    "leader",
    "versions",
    "gated pods",
    "admission policy",
    "pod webhook (dry run)",
)
_EXPECTED = {COMMIT: "Fail", PODS: "Ignore", CONFIGS: "Ignore"}
_SOON = timedelta(days=7)
_WAITS_LONG = timedelta(minutes=1)
_VERSION_LABEL = "app.kubernetes.io/version"


def check(evidence: Evidence, now: datetime, own_version: str) -> Iterator[Finding]:
    """Everything about the controller; `own_version` is that of this program."""
    yield from _kubernetes(evidence)
    yield from _webhooks(evidence, now)
    yield from _trial(evidence)
    yield from _lease(evidence, now)
    yield from _leader(evidence)
    yield from _versions(evidence, own_version)
    yield from _policies(evidence)
    yield from _gated(evidence, now)


def _kubernetes(evidence: Evidence) -> Iterator[Finding]:
    served = evidence.served
    wanted = {
        "DRAConsumableCapacity (shares)": served.features.consumable_capacity,
        "DRAExtendedResource (nvidia.com/gpu)": served.extended_resources,
        "DRADeviceTaints (health, cordon)": served.features.device_taints,
        "DRAPartitionableDevices (MIG)": served.features.partitionable_devices,
    }
    off = [name for name, on in wanted.items() if not on]
    if off:
        yield warn(
            _API,
            f"{served.version} without {', '.join(off)}",
            "on by default from Kubernetes 1.36; before, switch the feature gates on",
        )
    else:
        yield ok(_API, f"{served.version}, with {', '.join(wanted)}")


# Webhooks


def _webhooks(evidence: Evidence, now: datetime) -> Iterator[Finding]:
    if evidence.webhooks.unseen:
        yield skip("webhooks", evidence.webhooks.unseen)
        return
    found = {one.metadata.name: one for one in evidence.webhooks.items}
    for name, policy in _EXPECTED.items():
        configuration = found.get(name)
        if configuration is None or not configuration.webhooks:
            yield _missing(name)
        else:
            yield from _webhook(evidence, configuration, policy, now)


def _missing(name: str) -> Finding:
    check, todo = f"webhook {name}", "install the chart again (helm upgrade)"
    if name == CONFIGS:
        said = f"there is no ValidatingWebhookConfiguration {name}: a wrong GpuConfig shows late"
        return warn(check, said, todo)
    return fail(check, f"there is no MutatingWebhookConfiguration {name}", todo)


def _webhook(
    evidence: Evidence, configuration: WebhookConfiguration, policy: str, now: datetime
) -> Iterator[Finding]:
    check, webhook = f"webhook {configuration.metadata.name}", configuration.webhooks[0]
    problems = [
        *_wrong_policy(check, webhook, policy),
        *_authority(check, webhook, now),
        *_endpoints(check, evidence, webhook),
    ]
    yield from problems or [ok(check, f"{_address(webhook)}, trusted, failurePolicy {policy}")]


def _wrong_policy(check: str, webhook: Webhook, policy: str) -> Iterator[Finding]:
    if webhook.failure_policy != policy:
        todo = f"set it back to {policy} (helm upgrade)"
        said = f"failurePolicy is {webhook.failure_policy}, not {policy}"
        risk = ": two pods may get one card while the controller is away"
        yield fail(check, said + (risk if policy == "Fail" else ""), todo)


def _authority(check: str, webhook: Webhook, now: datetime) -> Iterator[Finding]:
    """Whom the API server trusts: the newest of the certificates counts."""
    todo = (
        "the controller puts its own authority in within a minute (see its log); with "
        "cert-manager, look at the Certificate"
    )
    try:
        pem = base64.b64decode(webhook.client_config.ca_bundle, validate=True)
        known = x509.load_pem_x509_certificates(pem) if pem else []
    except (binascii.Error, ValueError) as error:
        yield fail(check, f"its caBundle cannot be read: {error}", todo)
        return
    if not known:
        if webhook.client_config.service is not None:
            yield fail(check, "its caBundle is empty: the API server trusts nobody", todo)
        return
    ends = max(one.not_valid_after_utc for one in known)
    if ends <= now:
        yield fail(check, f"what its caBundle trusts has expired on {ends:%Y-%m-%d}", todo)
    elif ends - now < _SOON:
        yield warn(check, f"what its caBundle trusts expires on {ends:%Y-%m-%d}", todo)


def _endpoints(check: str, evidence: Evidence, webhook: Webhook) -> Iterator[Finding]:
    service = webhook.client_config.service
    if service is None or evidence.endpoints.unseen:
        return
    label = "kubernetes.io/service-name"
    slices = [
        one for one in evidence.endpoints.items if one.metadata.labels.get(label) == service.name
    ]
    if not any(point.conditions.ready is not False for one in slices for point in one.endpoints):
        yield fail(
            check,
            f"nobody is behind Service {service.namespace}/{service.name}",
            f"kubectl -n {service.namespace} get pods -l app.kubernetes.io/component=controller; "
            "quadrant-commit needs the pod that leads",
        )


def _address(webhook: Webhook) -> str:
    service = webhook.client_config.service
    if service is None:
        return webhook.client_config.url or "no address"
    return f"service {service.namespace}/{service.name}"


def _trial(evidence: Evidence) -> Iterator[Finding]:
    trial = evidence.trial
    if trial.unseen:
        yield skip(_TRIAL, trial.unseen)
    elif trial.refused:
        yield fail(_TRIAL, f"a pod in a dry run is refused: {trial.refused}", "see the sentence")
    elif trial.gated:
        yield ok(_TRIAL, "a pod in a dry run gets the gate")
    else:
        yield fail(
            _TRIAL,
            "a pod in a dry run gets no gate: the API server does not reach the webhook, or calls "
            "it not",
            "see the API server's log for calls of pods.quadrant.dev that failed",
        )


# Leading


def _lease(evidence: Evidence, now: datetime) -> Iterator[Finding]:
    if evidence.leases.unseen:
        yield skip(_LEASE, evidence.leases.unseen)
        return
    lease = next(iter(evidence.leases.items), None)
    if lease is None:
        yield fail(
            _LEASE,
            f"there is no lease {LEASE}: no controller has ever led",
            f"kubectl -n {evidence.namespace} logs deploy/quadrant-controller",
        )
        return
    holder = lease.spec.holder_identity
    if not holder:
        yield fail(_LEASE, "nobody leads: claims of this driver wait", _start(evidence))
        return
    age = _age(lease, now)
    if age is None or age > timedelta(seconds=lease.spec.lease_duration_seconds):
        said = "never" if age is None else f"{age.total_seconds():.0f} s ago"
        yield fail(
            _LEASE,
            f"{holder} renewed it {said}, and nobody has taken over",
            f"{_start(evidence)}; if pods are running, compare the clock of this machine",
        )
    else:
        yield ok(_LEASE, f"{holder}, renewed {max(0.0, age.total_seconds()):.0f} s ago")


def _start(evidence: Evidence) -> str:
    return f"kubectl -n {evidence.namespace} rollout status deploy/quadrant-controller"


def _age(lease: Lease, now: datetime) -> timedelta | None:
    try:
        return now - datetime.fromisoformat(lease.spec.renew_time or "").astimezone(UTC)
    except ValueError:
        return None


def _leader(evidence: Evidence) -> Iterator[Finding]:
    if evidence.controllers.unseen:
        yield skip(_LEADER, evidence.controllers.unseen)
        return
    pods = [pod for pod in evidence.controllers.items if not pod.finished]
    if not pods:
        yield skip(_LEADER, f"no controller pods in namespace {evidence.namespace}")
        return
    marked = [pod for pod in pods if pod.metadata.labels.get(names.LEADER_LABEL) == "true"]
    lease = next(iter(evidence.leases.items), None)
    holder = lease.spec.holder_identity if lease is not None else ""
    if len(marked) != 1:
        yield fail(
            _LEADER,
            f"{len(marked)} of {len(pods)} controller pods carry {names.LEADER_LABEL}=true, not 1",
            "wait 20 s; if it stays so, see the controllers' logs for the label",
        )
    elif holder and not holder.startswith(marked[0].metadata.name):
        yield warn(
            _LEADER,
            f"{marked[0].metadata.name} carries the label, {holder} holds the lease",
            "a moment after a take-over that is so; wait 20 s and look again",
        )
    else:
        yield from _replicas(marked[0], pods)


def _replicas(leader: Pod, pods: list[Pod]) -> Iterator[Finding]:
    serving = sum(map(ready, pods))
    if serving < len(pods):
        yield warn(
            _LEADER,
            f"{leader.metadata.name} leads, but {serving} of {len(pods)} replicas are ready",
            "kubectl describe the pod that is not; while it is so, nobody may stand by",
        )
    else:
        yield ok(_LEADER, f"{leader.metadata.name} leads, {serving} of {len(pods)} replicas ready")


# The rest


def _versions(evidence: Evidence, own: str) -> Iterator[Finding]:
    workloads = (*evidence.deployments.items, *evidence.daemonsets.items)
    if not workloads:
        said = evidence.deployments.unseen or "no Deployment or DaemonSet of ours"
        yield skip(_VERSIONS, f"{said}; this program is {own}")
        return
    found = {
        one.metadata.name: one.metadata.labels.get(_VERSION_LABEL, "unknown") for one in workloads
    }
    said = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
    if set(found.values()) == {own}:
        yield ok(_VERSIONS, f"all {own}")
    else:
        todo = "upgrade the chart, or this program: pip install quadrant-dra==VERSION"
        yield warn(_VERSIONS, f"{said}; this program is {own}", todo)


def _policies(evidence: Evidence) -> Iterator[Finding]:
    if evidence.policies.unseen:
        yield skip(_POLICY, evidence.policies.unseen)
        return
    found = {one.metadata.name for one in evidence.policies.items}
    missing = [name for name in POLICIES if name not in found]
    if missing:
        yield warn(
            _POLICY,
            f"no ValidatingAdmissionPolicy {', '.join(missing)}: a plugin could publish devices of "
            "other nodes",
            "install the chart's admission policies (helm upgrade)",
        )
    else:
        yield ok(_POLICY, f"{', '.join(POLICIES)} installed")


def _gated(evidence: Evidence, now: datetime) -> Iterator[Finding]:
    if evidence.pods.unseen:
        yield skip(_GATED, evidence.pods.unseen)
        return
    late = [pod for pod in evidence.pods.items if _is_gated(pod) and _older(pod, now)]
    if late:
        first = min(late, key=lambda pod: pod.metadata.creation_timestamp or "")
        yield fail(
            _GATED,
            f"{len(late)} wait at our gate for more than a minute, the first is "
            f"{first.metadata.namespace}/{first.metadata.name}",
            "no controller leads, or it cannot patch pods; "
            f"quadrant explain pod/{first.metadata.name} -n {first.metadata.namespace} says more",
        )
    else:
        yield ok(_GATED, "no pod waits at our gate for more than a minute")


def _is_gated(pod: Pod) -> bool:
    return not pod.finished and any(
        gate.name == names.PLACEMENT_GATE for gate in pod.spec.scheduling_gates
    )


def _older(pod: Pod, now: datetime) -> bool:
    try:
        created = datetime.fromisoformat(pod.metadata.creation_timestamp or "")
    except ValueError:
        return False
    return now - created.astimezone(UTC) > _WAITS_LONG
