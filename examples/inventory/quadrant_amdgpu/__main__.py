"""Prints what would be published of this machine; an argument stands for `/sys`."""

import sys
from pathlib import Path

import msgspec

from driver.node.errors import InventoryError
from quadrant_amdgpu import AmdCards

try:
    found = AmdCards(Path(sys.argv[1] if len(sys.argv) > 1 else "/sys")).cards()
except InventoryError as error:
    sys.exit(str(error))
sys.stdout.write(f"{msgspec.json.format(msgspec.json.encode(found)).decode()}\n")
