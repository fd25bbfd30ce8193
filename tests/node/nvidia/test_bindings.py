"""Who may know of NVIDIA's library."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
HOME = ROOT / "driver" / "node" / "nvidia"


def imported(path: Path) -> set[str]:
    """The packages that a file imports, at whatever place in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_the_bindings_are_used_in_one_place_only() -> None:
    """Everybody else has ports, and works without the extra `nvml`."""
    users = {path for path in (ROOT / "driver").rglob("*.py") if "pynvml" in imported(path)}
    assert users
    assert {path.parent for path in users} == {HOME}


def test_that_place_is_imported_on_demand_only() -> None:
    """At the top of a module it would be needed where there are no NVIDIA cards."""
    others = [path for path in (ROOT / "driver").rglob("*.py") if path.parent != HOME]
    for path in others:
        module = ast.parse(path.read_text("utf-8"))
        top = [node for node in module.body if isinstance(node, ast.ImportFrom)]
        assert not [n for n in top if (n.module or "").startswith("driver.node.nvidia")], path
