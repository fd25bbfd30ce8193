"""A second kube-scheduler, unmodified, for the pods that name it."""

import json
from pathlib import Path
from typing import Any

from hack.deployment import Part, free_port

NAME = "second"


def second(state: dict[str, Any], folder: Path) -> tuple[Part, str]:
    """The program of the cluster's own scheduler with a profile `second`, and its health's URL.

    `state` is what `hack/cluster status -o json` prints; `folder` gets its configuration and log.
    """
    (own,) = (part for part in state["components"] if part["name"] == "kube-scheduler")
    kubeconfig = next(
        flag.partition("=")[2] for flag in own["argv"] if flag.startswith("--kubeconfig=")
    )
    port = free_port()
    config = folder / "second-scheduler.json"
    config.write_text(json.dumps(_config(kubeconfig)))
    argv = [state["bin"]["kube-scheduler"], f"--config={config}", "--bind-address=127.0.0.1"]
    argv += [f"--secure-port={port}", f"--authentication-kubeconfig={kubeconfig}"]
    argv += [f"--authorization-kubeconfig={kubeconfig}"]
    part = Part("second-scheduler", argv, folder / "second-scheduler.log")
    return part, f"https://127.0.0.1:{port}/healthz"


def _config(kubeconfig: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": NAME}],
    }
