"""What each value is for, in the words of values.yaml: the comment right above its name."""

from collections.abc import Iterator

import yaml

Path = tuple[str, ...]


def descriptions(text: str) -> dict[Path, str]:
    """The comments of a YAML text, by the path of the key that each stands above."""
    lines = text.splitlines()
    found = ((path, _above(lines, mark)) for path, mark in _keys(yaml.compose(text), ()))
    return {path: comment for path, comment in found if comment}


def _keys(node: yaml.Node | None, path: Path) -> Iterator[tuple[Path, yaml.Mark]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            yield here, key.start_mark
            yield from _keys(value, here)


def _above(lines: list[str], mark: yaml.Mark) -> str:
    begins = f"{' ' * mark.column}#"
    line = mark.line
    while line and lines[line - 1].startswith(begins):
        line -= 1
    return "\n".join(one.removeprefix(begins).removeprefix(" ") for one in lines[line : mark.line])
