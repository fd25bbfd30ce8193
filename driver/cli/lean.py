"""How the processes of every node read their options: with argparse, told as by all commands."""

import argparse
from typing import NoReturn

from driver.cli.usage import UsageError


class Parser(argparse.ArgumentParser):
    """Raises `UsageError` for a wrong call, where argparse would end the process."""

    def __init__(self, *, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """See `argparse.ArgumentParser.error`."""
        raise UsageError(message)

    def add_log_level(self) -> None:
        """The option that all of them have, under the name `log_level`."""
        levels = ("debug", "info", "warning", "error")
        self.add_argument("--log-level", default="info", choices=levels)
