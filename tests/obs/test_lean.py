"""A process that starts lean logs as ever, and others still find rich."""

import subprocess
import sys

_SCRIPT = """
import sys
from driver.obs.lean import import_structlog
import_structlog()
assert not any(name.partition(".")[0] == "rich" for name in sys.modules)
from driver.obs import logging
logging.configure("info", stream=sys.stdout)
import structlog
try:
    raise ValueError("told")
except ValueError:
    structlog.get_logger("a").exception("failed", n=1)
import rich.console
rich.console.Console()
"""


def test_structlog_works_without_rich_and_rich_is_still_there() -> None:
    """With the traceback in the line."""
    run = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )
    assert '"message":"failed"' in run.stdout
    assert "ValueError: told" in run.stdout
