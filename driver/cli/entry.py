"""Where `quadrant` begins: `quadrant node` does not wait for what only people's commands need."""

import sys

from driver.cli.usage import UsageError
from driver.model.errors import QuadrantError


def main() -> None:
    """Run the command line; ends the process with 0, 1 (it failed) or 2 (it was called wrongly)."""
    if sys.argv[1:2] != ["node"]:
        from driver.cli import main as others  # noqa: PLC0415

        others.main()
        return
    from driver.cli import node  # noqa: PLC0415

    try:
        node.call(sys.argv[2:])
    except QuadrantError as error:
        print(f"quadrant: {error}", file=sys.stderr)  # noqa: T201 - it is for the user
        sys.exit(2 if isinstance(error, UsageError) else 1)
