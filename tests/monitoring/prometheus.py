"""A real Prometheus for tests: Debian's, with nothing but what a test tells it to scrape."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

_APT = ("apt-get", "-qq", "install", "--yes", "--no-install-recommends", "prometheus")


def program(name: str) -> str:
    """Where `prometheus` or `promtool` is; installed first when this is root; else skips."""
    found = shutil.which(name)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        env = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        subprocess.run(_APT, env=env, check=False, capture_output=True)
        found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}: install it (apt-get install prometheus), or run this as root")
    return found


class Prometheus:
    """Asks a running server."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session, self._base = session, f"http://{address}/api/v1"

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression, now; an expression that is wrong fails the test."""
        async with self._session.get(f"{self._base}/query", params={"query": expression}) as answer:
            body = json.loads(await answer.read())
        assert body["status"] == "success", f"{expression}: {body.get('error')}"
        found: list[dict[str, Any]] = body["data"]["result"]
        return found

    async def until(self, expression: str) -> None:
        """Wait until the expression has a series."""
        async with asyncio.timeout(60):
            while not await self._ready(expression):  # noqa: ASYNC110 # a process tells no events
                await asyncio.sleep(0.2)

    async def _ready(self, expression: str) -> bool:
        try:
            return bool(await self.query(expression))
        except (aiohttp.ClientError, json.JSONDecodeError):
            return False


@asynccontextmanager
async def running(folder: Path, targets: dict[str, str], address: str) -> AsyncIterator[Prometheus]:
    """A server at `address` that scrapes each target (HOST:PORT, and its `node`) every second."""
    configuration = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {
                "job_name": "quadrant",
                "static_configs": [
                    {"targets": [target], "labels": {"node": node}}
                    for target, node in targets.items()
                ],
            }
        ],
    }
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(configuration))
    log = (folder / "prometheus.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        program("prometheus"),
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        stdout=log,
        stderr=log,
    )
    try:
        async with aiohttp.ClientSession() as session:
            yield Prometheus(session, address)
    finally:
        process.terminate()
        await process.wait()
        log.close()
