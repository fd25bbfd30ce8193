"""Results on stdout, all other words on stderr, whatever happens on the way."""

import asyncio
import json
import os
import pty
import re
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


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
async def test_a_terminal_is_coloured_unless_it_is_not_wanted(
    live: LiveCluster, variables: dict[str, str], *, coloured: bool
) -> None:
    """By https://no-color.org; `test_fleet` has that nothing but a terminal is."""
    live.node("a", [gpu(0)])
    live.claim("mine", picked("gpu-0"))
    command = (sys.executable, "-m", "driver.cli", "matrix", "--kubeconfig", live.kubeconfig())
    bare = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *command, stdout=theirs, env=bare | {"TERM": "xterm-256color"} | variables
    )
    assert await process.wait() == 0
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "██" in shown
    assert (re.search(r"\x1b\[[0-9;]*3[0-9]", shown) is not None) is coloured
