"""Prints what would be published of this machine; an argument stands for `/sys`."""

import sys
from pathlib import Path

import msgspec

from quadrant_amdgpu import AmdCards

found = AmdCards(Path(sys.argv[1] if len(sys.argv) > 1 else "/sys")).cards()
sys.stdout.write(f"{msgspec.json.format(msgspec.json.encode(found)).decode()}\n")
