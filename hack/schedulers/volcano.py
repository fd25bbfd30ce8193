"""Volcano's scheduler and its controllers, built from their Go module, on a local cluster.

The module beside this file says which versions. The scheduler lacks what its chart would give it
only in one thing: its configuration has the DRA part of `predicates` on, as Volcano's own
documentation says to.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

from hack.deployment import Part, free_port
from hack.kubernetes import binaries, layout, toolchain

NAME = "volcano"
_MODULE = Path(__file__).parent / "volcano"
_CONFIG = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
  - name: proportion
  - name: nodeorder
  - name: binpack
"""


def build() -> dict[str, str]:
    """The paths of `scheduler` and `controller-manager`; the first time takes minutes."""
    return binaries.ensure_tools("volcano", _MODULE, cache=layout.cache())


def definitions() -> list[Path]:
    """The manifests of Volcano's custom resources, as its module has them."""
    go = toolchain.find(layout.cache(), module=_MODULE)
    done = subprocess.run(
        [go, "list", "-m", "-json", "volcano.sh/volcano"],
        cwd=_MODULE, env=toolchain.environment(), check=True, capture_output=True, text=True,
    )  # fmt: skip
    folder = Path(json.loads(done.stdout)["Dir"]) / "config" / "crd"
    return sorted(folder.glob("*/bases/*.yaml"))


def parts(state: dict[str, Any], folder: Path) -> dict[str, tuple[Part, str]]:
    """Scheduler and controllers, each with its health's URL; the custom resources must be there.

    `state` is what `hack/cluster status -o json` prints; `folder` gets configuration and logs.
    """
    config = folder / "volcano.yaml"
    config.write_text(_CONFIG, encoding="utf-8")
    return {
        "scheduler": _part(
            state, folder, "scheduler", f"--scheduler-conf={config}", f"--cache-dump-dir={folder}",
        ),
        "controller-manager": _part(state, folder, "controller-manager"),
    }  # fmt: skip


def _part(state: dict[str, Any], folder: Path, program: str, *flags: str) -> tuple[Part, str]:
    name, port = f"volcano-{program}", free_port()
    argv = [
        build()[program],
        f"--kubeconfig={state['kubeconfig']}",
        "--leader-elect=false",
        f"--scheduler-name={NAME}",
        "--enable-healthz=true",
        f"--healthz-address=127.0.0.1:{port}",
        f"--listen-address=127.0.0.1:{free_port()}",
        *flags,
    ]
    return Part(name, argv, folder / f"{name}.log"), f"http://127.0.0.1:{port}/healthz"
