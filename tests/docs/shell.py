"""How is a command typed, and did it do what the book and its page say?"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.docs.book import Way
from tests.docs.commands import ROOT, commands, short

DESK = Path(__file__).parent / "desk"
BIN = Path(sys.executable).parent
_WITHIN_S = 300


def lay(desk: Path) -> Path:
    """A folder with all that commands name: this checkout, and the files of `desk`."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith(".") or entry.name == ".venv":
            (desk / entry.name).symlink_to(entry)
    for entry in DESK.iterdir():
        (desk / entry.name).symlink_to(entry)
    return desk


def fault(
    text: str,
    way: Way,
    desk: Path,
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    written: str = "",
) -> str:
    """Run it as a reader would; empty when it ended as it has to, else what happened.

    `written` is how it stands on its page, where `text` has real names in it.
    """
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{text} {way.more}".rstrip()],
        cwd=desk,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_WITHIN_S,
    )
    told = f"$ {text}\n{done.stdout}"
    if done.returncode != way.status:
        return f"{told}ended with {done.returncode}, expected {way.status}"
    if not re.search(way.shows, done.stdout, re.MULTILINE):
        return f"{told}has nothing like {way.shows}"
    unlike = (one.shown for one in commands() if one.name == short(written or text))
    return "".join(f"{told}its page says\n{one}" for one in unlike if not like(done.stdout, one))


def like(output: str, shown: str) -> bool:
    """Whether a page's words are there, however its lines are broken; an ellipsis is anything."""
    parts = (re.escape(" ".join(part.split())) for part in shown.split("…"))
    return re.search(".*?".join(parts), " ".join(output.split())) is not None
