"""Who may speak to the API server, and how do they prove it? Must not start anything."""

import base64
import json
import os
import secrets
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import ClusterError
from .layout import Layout
from .network import API_SERVICE

_DAYS = "3650"
_NAMES = (
    "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,"
    f"IP:127.0.0.1,IP:{API_SERVICE}"
)

ADMIN = "admin"
SCHEDULER = "system:kube-scheduler"
CONTROLLER_MANAGER = "system:kube-controller-manager"


def node_user(node: str) -> str:
    """The user name that the Node authorizer knows a node by."""
    return f"system:node:{node}"


def _groups(user: str) -> str:
    if user == ADMIN:
        return "system:masters"
    return "system:nodes" if user.startswith("system:node:") else ""


@dataclass(frozen=True)
class Credentials:
    """Paths of keys and certificates, and one token per user."""

    folder: Path
    tokens: dict[str, str]

    def file(self, name: str) -> str:
        """The path of one file, such as ``ca.crt``."""
        return str(self.folder / name)


def make(layout: Layout, *, hosts: Iterable[str], nodes: Iterable[str]) -> Credentials:
    """Make a CA, the certificates below it, the service account key pair and the token file."""
    folder = layout.pki
    folder.mkdir(mode=0o700)
    _openssl(folder, [*_new_key("ca"), "-x509", "-days", _DAYS, "-subj", "/CN=quadrant-cluster",
                      "-out", "ca.crt"])  # fmt: skip
    names = ",".join([_NAMES, *(f"IP:{host}" for host in hosts)])
    _sign(folder, "apiserver", subject="/CN=kube-apiserver", extension=f"subjectAltName={names}")
    _sign(
        folder,
        "kubelet-client",
        subject="/O=system:masters/CN=kube-apiserver-kubelet-client",
        extension="extendedKeyUsage=clientAuth",
    )
    _openssl(folder, ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048",
                      "-out", "service-account.key"])  # fmt: skip
    _openssl(folder, ["pkey", "-in", "service-account.key", "-pubout",
                      "-out", "service-account.pub"])  # fmt: skip
    users = [ADMIN, SCHEDULER, CONTROLLER_MANAGER, *map(node_user, nodes)]
    tokens = {user: secrets.token_hex(16) for user in users}
    lines = [f'{token},{user},{user},"{_groups(user)}"' for user, token in tokens.items()]
    _write(folder / "tokens.csv", "\n".join(lines) + "\n")
    return Credentials(folder, tokens)


def admin_token(layout: Layout) -> str:
    """The administrator's token of a cluster that exists."""
    try:
        lines = (layout.pki / "tokens.csv").read_text(encoding="utf-8").splitlines()
        return next(fields[0] for fields in (line.split(",") for line in lines)
                    if fields[1] == ADMIN)  # fmt: skip
    except (FileNotFoundError, StopIteration) as cause:
        raise ClusterError(
            f"cluster {layout.name} has no readable token file in {layout.pki}: "
            f"run hack/cluster up --name {layout.name}"
        ) from cause


def write_kubeconfig(path: Path, *, credentials: Credentials, user: str, server: str) -> None:
    """Write a kubeconfig that needs no other file. It is JSON, which is YAML as well."""
    authority = base64.b64encode((credentials.folder / "ca.crt").read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "quadrant",
        "clusters": [
            {
                "name": "quadrant",
                "cluster": {"server": server, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": user, "user": {"token": credentials.tokens[user]}}],
        "contexts": [{"name": "quadrant", "context": {"cluster": "quadrant", "user": user}}],
    }
    _write(path, json.dumps(config, indent=2) + "\n")


def _new_key(name: str) -> list[str]:
    return ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", f"{name}.key"]  # fmt: skip


def _sign(folder: Path, name: str, *, subject: str, extension: str) -> None:
    """A key and its certificate, signed by the CA."""
    _openssl(folder, [*_new_key(name), "-x509", "-CA", "ca.crt", "-CAkey", "ca.key",
                      "-days", _DAYS, "-subj", subject, "-addext", extension,
                      "-addext", "basicConstraints=critical,CA:FALSE",
                      "-out", f"{name}.crt"])  # fmt: skip


def _openssl(folder: Path, arguments: Sequence[str]) -> None:
    done = subprocess.run(
        ["openssl", *arguments], cwd=folder, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise ClusterError(f"`openssl {' '.join(arguments)}` failed: {done.stderr.strip()}")


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
