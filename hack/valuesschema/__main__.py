"""`.venv/bin/python -m hack.valuesschema [--check]`."""

import argparse
import sys
from pathlib import Path

from hack.valuesschema.schema import schema

CHART = Path(__file__).resolve().parents[2] / "helm" / "quadrant"
FILE = CHART / "values.schema.json"
VALUES = CHART / "values.yaml"


def main() -> None:
    """Write the schema, or end with 1 where another one is there."""
    parser = argparse.ArgumentParser(prog="python -m hack.valuesschema")
    parser.add_argument("--check", action="store_true", help="write nothing; say what differs")
    text = schema(VALUES.read_text("utf-8"))
    if not parser.parse_args().check:
        FILE.write_text(text, "utf-8")
    elif FILE.read_text("utf-8") != text:
        sys.exit(f"{FILE.name} is not what the structs say: run python -m hack.valuesschema")


if __name__ == "__main__":
    main()
