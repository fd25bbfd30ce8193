"""Results on stdout, all other words on stderr, whatever happens on the way."""

import asyncio
import json
import subprocess
import sys

import pytest
import yaml
from aiohttp import web

from tests.cli.livecluster import LiveCluster
from tests.controller.commits import gpu, picked
from tests.kube.objects import Refusal


@pytest.mark.parametrize(
    "arguments",
    [
        ("matrix", "-o", "json"),
        ("claims", "-o", "json"),
        ("topo", "a", "-o", "json"),
        ("doctor", "-o", "json"),
        ("explain", "claim/mine", "-o", "json"),
        ("explain", "claim/mine", "-o", "yaml"),
        ("snapshot",),
    ],
)
async def test_stdout_is_data_for_who_may_only_look(
    live: LiveCluster, arguments: tuple[str, ...]
) -> None:
    """What the API server refuses on the way is noted, if at all, where notes belong."""
    live.node("a", [gpu(0)])
    live.claim("mine", picked("gpu-0"))
    refusal = Refusal(403, "Forbidden", "cannot create").status()
    live.server.faults.append(
        lambda request: web.json_response(refusal, status=403) if request.method == "POST" else None
    )
    command = [sys.executable, "-m", "driver.cli", *arguments]
    options = ["--kubeconfig", str(live.kubeconfig())]
    done = await asyncio.to_thread(
        subprocess.run, [*command, *options], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    read = yaml.safe_load if "yaml" in arguments else json.loads
    assert isinstance(read(done.stdout), dict)
    assert "Traceback" not in done.stderr
