"""Headless Chromium, driven through its DevTools protocol: enough to look at one page."""

import asyncio
import itertools
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_STARTS_WITHIN_S = 60.0
_CODES = {
    "Tab": 9,
    "Enter": 13,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
_APT = ("apt-get", "-qq", "install", "--yes", "--no-install-recommends", "chromium")


def chromium() -> str | None:
    """Where the browser is; Debian's is installed first when this is root and there is none."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(_APT, env=env, check=False, capture_output=True)
        found = shutil.which("chromium")
    return found


class Page:
    """One page in the browser. `requests` are all addresses it asked for, `errors` what it said."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.requests: list[str] = []
        self.errors: list[str] = []

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol; its result."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json()
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        elif message.get("method") == "Log.entryAdded":
            self.errors.append(params["entry"]["text"])

    async def open(self, file: Path) -> None:
        """Load a file, and wait until it is there."""
        await self.visit(file.as_uri())

    async def visit(self, url: str) -> None:
        """Load an address, and wait until it is there."""
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.send(f"{domain}.enable")
        await self.send("Emulation.setFocusEmulationEnabled", enabled=True)
        await self.send("Page.navigate", url=url)
        while await self.value("document.readyState") != "complete":  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def value(self, expression: str) -> Any:
        """What an expression is in the page."""
        answer = await self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def press(self, key: str) -> None:
        """Press a key and let it go."""
        code = _CODES[key]
        for kind in ("rawKeyDown", "keyUp"):
            await self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                nativeVirtualKeyCode=code,
            )

    async def write(self, text: str) -> None:
        """Type into what has the focus."""
        await self.send("Input.insertText", text=text)


@contextmanager
def running(program: str, folder: Path) -> Iterator[str]:
    """A browser; its address for tools. It ends with the block."""
    profile = folder / "profile"
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")
    window = ("--window-size=1300,900", "--remote-debugging-port=0", f"--user-data-dir={profile}")
    process = subprocess.Popen(
        [program, *options, *window, "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{_port(process, profile / 'DevToolsActivePort')}"
    finally:
        process.terminate()
        process.wait()


def _port(process: "subprocess.Popen[bytes]", file: Path) -> int:
    ends = time.monotonic() + _STARTS_WITHIN_S
    while not (file.exists() and file.read_text("utf-8").strip()):
        assert process.poll() is None, f"the browser ended with {process.returncode}"
        assert time.monotonic() < ends, f"the browser did not start in {_STARTS_WITHIN_S:.0f} s"
        time.sleep(0.05)
    return int(file.read_text("utf-8").split()[0])


@asynccontextmanager
async def browse(browser: str) -> AsyncIterator[Page]:
    """A new page of a running browser."""
    async with aiohttp.ClientSession() as session:
        async with session.put(f"{browser}/json/new") as answer:
            tab = await answer.json()
        try:
            async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
        finally:
            # A page that is live would go on asking.
            async with session.get(f"{browser}/json/close/{tab['id']}"):
                pass
