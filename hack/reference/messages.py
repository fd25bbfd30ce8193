"""Every sentence with which an error of ours is made, read off the source.

What differs from case to case is shown as an ellipsis.
"""

import ast
import re
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

import msgspec

_DRIVER = Path(__file__).resolve().parents[2] / "driver"
_ROOT = "QuadrantError"
# CEL's own words are those of Kubernetes; what is generated is not ours.
_LEFT_OUT = frozenset({"_proto", "selector"})
_WORD = re.compile(r"[A-Za-z]{2,}")
_FEWEST_WORDS = 3


class ErrorClass(msgspec.Struct, frozen=True, kw_only=True):
    """A class of errors: what its docstring says, and the sentences that are made with it."""

    name: str
    package: str
    about: str
    messages: tuple[str, ...]


@cache
def classes() -> tuple[ErrorClass, ...]:
    """All classes of errors that are raised on purpose, by package and name."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in _sources()}
    found = {node.name: (path, node) for path, tree in trees.items() for node in _classes(tree)}
    ours = _descendants({name: node for name, (_, node) in found.items()})
    said: dict[str, list[str]] = {name: [] for name in ours}
    for tree in trees.values():
        for name, message in _made(tree, ours):
            said[name].append(message)
    made = (
        ErrorClass(
            name=name,
            package=found[name][0].relative_to(_DRIVER).parts[0],
            about=" ".join((ast.get_docstring(found[name][1]) or "").split("\n\n")[0].split()),
            messages=tuple(sorted(dict.fromkeys(said[name]))),
        )
        for name in ours
    )
    return tuple(sorted(made, key=lambda one: (one.package, one.name)))


def _sources() -> Iterator[Path]:
    for path in sorted(_DRIVER.rglob("*.py")):
        if path.relative_to(_DRIVER).parts[0] not in _LEFT_OUT:
            yield path


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _descendants(found: dict[str, ast.ClassDef]) -> frozenset[str]:
    ours = {_ROOT}
    before = 0
    while len(ours) != before:
        before = len(ours)
        ours |= {
            name
            for name, node in found.items()
            if any(isinstance(base, ast.Name) and base.id in ours for base in node.bases)
        }
    return frozenset(ours)


def _made(tree: ast.Module, ours: Container[str]) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id in ours and node.args:
            message = pattern(node.args[-1])
            if len(_WORD.findall(message)) >= _FEWEST_WORDS:
                yield node.func.id, message


def pattern(node: ast.expr) -> str:
    """A string, or what is fixed of one that is put together; "" for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        parts = (pattern(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
        return re.sub(r"…{2,}", "…", "".join(parts))
    return ""
