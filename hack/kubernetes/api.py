"""What does the API server say? Reads only, with the administrator's token."""

import json
import ssl
import time
import urllib.error
import urllib.request
from typing import Any

from .errors import ClusterError


def get(server: str, path: str, *, token: str, authority: str) -> dict[str, Any] | None:
    """One object or list; None when it does not exist (yet) or no answer came."""
    context = ssl.create_default_context(cafile=authority)
    request = urllib.request.Request(
        f"{server}{path}", headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except (urllib.error.URLError, OSError):
        return None


def node_ready(node: dict[str, Any] | None) -> bool:
    """Whether a Node says that it is Ready."""
    conditions = (node or {}).get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def wait_usable(
    server: str, nodes: list[str], *, token: str, authority: str, seconds: float = 120
) -> None:
    """Wait until pods can be created (their account exists) and all nodes are Ready."""
    deadline = time.monotonic() + seconds
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    waiting = list(nodes)
    while True:
        waiting = [
            node
            for node in waiting
            if not node_ready(
                get(server, f"/api/v1/nodes/{node}", token=token, authority=authority)
            )
        ]
        if not waiting and get(server, account, token=token, authority=authority):
            return
        if time.monotonic() > deadline:
            what = f"nodes {', '.join(waiting)}" if waiting else "the account of pods"
            raise ClusterError(
                f"{what} not ready after {seconds:.0f} s: see hack/cluster logs kubelet/NODE "
                "and hack/cluster logs kube-controller-manager"
            )
        time.sleep(0.2)
