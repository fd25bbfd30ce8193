"""The fake management library, built and described; `README.md` has the formats.

Used by tests through the fixtures of `tests/node/conftest.py`, and by hand through `build`.
"""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
LOST = 15
RESET_REQUIRED = 16
UNKNOWN = 999
XID = 8
DOUBLE_BIT_ECC = 2


def build(folder: Path) -> Path:
    """The library and the programs in a folder of their own, which is returned."""
    subprocess.run([HERE / "build", folder], check=True, timeout=120)
    return folder


def load(built: Path) -> None:
    """Have this process find the library by its name, as any process with LD_LIBRARY_PATH does."""
    ctypes.CDLL(str(built / "libnvidia-ml.so.1"))


class FakeMachine:
    """One machine with cards: a description of its own, and the state beside it."""

    def __init__(self, built: Path, folder: Path, description: str) -> None:
        self.built = built
        for profiles in (HERE / "machines").glob("*.mig"):
            shutil.copy(profiles, folder)
        self.description = folder / "machine.txt"
        shutil.copy(HERE / "machines" / f"{description}.txt", self.description)
        self.state = folder / "machine.txt.state"
        self.state.mkdir()

    def variables(self) -> dict[str, str]:
        """What a process needs to find the library, the programs and this machine."""
        return {
            "LD_LIBRARY_PATH": str(self.built),
            "PATH": f"{self.built}{os.pathsep}{os.environ['PATH']}",
            "QUADRANT_FAKE_NVML": str(self.description),
        }

    def errors(self, card: int, errors: dict[str, int]) -> None:
        """Have calls on a card fail: code by function, `*` for all; an empty dict ends it."""
        lines = (f"{function} {code}\n" for function, code in errors.items())
        self.write(card, "errors", "".join(lines))

    def event(self, card: int, kind: int, data: int = 0) -> None:
        """Something that whoever waits for events of this kind learns."""
        with (self.state / "events").open("a") as file:
            file.write(f"{card} {kind} {data}\n")

    def write(self, card: int, name: str, text: str) -> None:
        """A file of a card's state: `ecc`, `rows`, `busy`, `compute-mode`, ..."""
        folder = self.state / f"card-{card}"
        folder.mkdir(exist_ok=True)
        # In one step: others read it at any time.
        new = folder / f".{name}"
        new.write_text(text)
        new.rename(folder / name)

    def setting(self, card: int, name: str) -> str:
        """What a card is set to; 0 where nobody has set it."""
        path = self.state / f"card-{card}" / name
        return path.read_text().strip() if path.exists() else "0"

    def parts(self, card: int) -> int:
        """How many GPU instances a card has."""
        path = self.state / f"card-{card}" / "instances"
        return path.read_text().count("gpu ") if path.exists() else 0

    def log(self) -> list[str]:
        """What was changed through the library, in order."""
        path = self.state / "log"
        return path.read_text().splitlines() if path.exists() else []
