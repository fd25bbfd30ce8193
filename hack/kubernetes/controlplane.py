"""With which arguments do etcd and the control plane run? Must not start them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import credentials, network
from .credentials import Credentials
from .layout import Layout
from .state import Component, log_of

SCHEDULER = "kube-scheduler"
CONTROLLER_MANAGER = "kube-controller-manager"
API_SERVER = "kube-apiserver"
ETCD = "etcd"


@dataclass(frozen=True)
class Ports:
    """The TCP ports of the control plane."""

    etcd: int
    etcd_peer: int
    api: int
    scheduler: int
    controller_manager: int


@dataclass(frozen=True)
class Options:
    """What a person may choose about the control plane."""

    feature_gates: str = ""
    runtime_config: str = ""
    qps: int | None = None
    """Requests per second of scheduler and controller-manager; None keeps Kubernetes' defaults."""
    json_storage: bool = False
    """Objects are kept in etcd as JSON, so that a test can read their history from etcd itself."""


@dataclass(frozen=True)
class ControlPlane:
    """All that the arguments follow from."""

    layout: Layout
    bin: dict[str, str]
    ports: Ports
    credentials: Credentials
    options: Options
    host: str | None
    """The address that nodes reach the API server at; None for a control plane alone."""
    group: str

    @property
    def server(self) -> str:
        """The API server as programs on this machine reach it."""
        return f"https://127.0.0.1:{self.ports.api}"

    @property
    def etcd_url(self) -> str:
        """The client URL of etcd."""
        return f"http://127.0.0.1:{self.ports.etcd}"

    def kubeconfig(self, name: str) -> Path:
        """The kubeconfig of a component."""
        return self.layout.pki / f"{name}.kubeconfig"


def etcd(plane: ControlPlane) -> Component:
    """A single etcd without fsync: its data is thrown away with the cluster."""
    peer = f"http://127.0.0.1:{plane.ports.etcd_peer}"
    return _component(
        plane,
        ETCD,
        [
            f"--data-dir={plane.layout.etcd}",
            f"--listen-client-urls={plane.etcd_url}",
            f"--advertise-client-urls={plane.etcd_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=8589934592",
            "--log-level=warn",
        ],
        health=f"{plane.etcd_url}/health",
    )


def api_server(plane: ControlPlane) -> Component:
    """The API server.

    etcd is never compacted, so that a test can replay the full history of an object. Services are
    reached through their endpoints (aggregator routing), because there is no kube-proxy: admission
    hooks work by Service as well as by URL.
    """
    return _component(
        plane,
        API_SERVER,
        [
            f"--etcd-servers={plane.etcd_url}",
            "--etcd-compaction-interval=0",
            f"--secure-port={plane.ports.api}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--service-cluster-ip-range={network.SERVICES}",
            "--kubelet-preferred-address-types=InternalIP",
            "--enable-aggregator-routing",
            "--allow-privileged",
            f"--audit-policy-file={_audit_policy_file(plane)}",
            f"--audit-log-path={plane.layout.audit_log}",
            *_trust(plane.credentials.file),
            *_addresses(plane),
            *(["--storage-media-type=application/json"] if plane.options.json_storage else []),
            *_flag("feature-gates", plane.options.feature_gates),
            *_flag("runtime-config", plane.options.runtime_config),
        ],
        health=f"{plane.server}/readyz",
    )


def _trust(files: Callable[[str], str]) -> list[str]:
    """Whom the API server believes, and how it proves itself to clients and kubelets."""
    return [
        f"--tls-cert-file={files('apiserver.crt')}",
        f"--tls-private-key-file={files('apiserver.key')}",
        f"--client-ca-file={files('ca.crt')}",
        f"--token-auth-file={files('tokens.csv')}",
        "--anonymous-auth=false",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files('service-account.pub')}",
        f"--service-account-signing-key-file={files('service-account.key')}",
        f"--kubelet-client-certificate={files('kubelet-client.crt')}",
        f"--kubelet-client-key={files('kubelet-client.key')}",
    ]


def _addresses(plane: ControlPlane) -> list[str]:
    if plane.host is None:
        # A loopback address is refused for the endpoints of the Service kubernetes.
        return ["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
                "--endpoint-reconciler-type=none"]  # fmt: skip
    return ["--bind-address=0.0.0.0", f"--advertise-address={plane.host}"]


def audit_policy() -> str:
    """What the API server writes down: who asked for what in a cluster, and the answer's status.

    Only the accounts that pods run with, and not Kubernetes' own: a test can tell which right was
    missing, and everybody else costs nothing.
    """
    return json.dumps(
        {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": [
                {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
                {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
                {"level": "None"},
            ],
        },
        indent=2,
    )


def _audit_policy_file(plane: ControlPlane) -> Path:
    return plane.layout.pki / "audit-policy.json"


def scheduler(plane: ControlPlane) -> Component:
    """kube-scheduler as Kubernetes ships it."""
    return _client(plane, SCHEDULER, [], port=plane.ports.scheduler)


def controller_manager(plane: ControlPlane) -> Component:
    """kube-controller-manager with every default controller, each with an account of its own.

    Those accounts cost a hundred requests at the start: with the default burst of 30 it would be
    usable 5 s later. The lasting rate is the default one.
    """
    files = plane.credentials.file
    own = [
        f"--service-account-private-key-file={files('service-account.key')}",
        f"--root-ca-file={files('ca.crt')}",
        "--use-service-account-credentials",
        *(["--kube-api-burst=200"] if plane.options.qps is None else []),
    ]
    return _client(plane, CONTROLLER_MANAGER, own, port=plane.ports.controller_manager)


def write_files(plane: ControlPlane) -> None:
    """Write the audit policy, and kubeconfigs for administrator, scheduler, controller-manager."""
    _audit_policy_file(plane).write_text(audit_policy(), encoding="utf-8")
    for path, user in (
        (plane.layout.kubeconfig, credentials.ADMIN),
        (plane.kubeconfig(SCHEDULER), credentials.SCHEDULER),
        (plane.kubeconfig(CONTROLLER_MANAGER), credentials.CONTROLLER_MANAGER),
    ):
        credentials.write_kubeconfig(
            path, credentials=plane.credentials, user=user, server=plane.server
        )


def _client(plane: ControlPlane, name: str, own: list[str], *, port: int) -> Component:
    kubeconfig = plane.kubeconfig(name)
    qps = plane.options.qps
    rates = [] if qps is None else [f"--kube-api-qps={qps}", f"--kube-api-burst={2 * qps}"]
    return _component(
        plane,
        name,
        [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            *own,
            *rates,
            *_flag("feature-gates", plane.options.feature_gates),
        ],
        health=f"https://127.0.0.1:{port}/healthz",
    )


def _flag(name: str, value: str) -> list[str]:
    return [f"--{name}={value}"] if value else []


def _component(plane: ControlPlane, name: str, arguments: list[str], *, health: str) -> Component:
    return Component(
        name=name,
        argv=(plane.bin[name], *arguments),
        log=str(log_of(plane.layout, name)),
        group=plane.group,
        health=health,
    )
