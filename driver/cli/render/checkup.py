"""A checklist for people: a word, what was looked at, what was found, what to do."""

from collections.abc import Iterator

from rich.text import Text

from driver.cli.checkup.finding import Checkup, Level

_COLOURS = {Level.OK: "green", Level.SKIP: "dim", Level.WARN: "yellow", Level.FAIL: "red bold"}


def as_text(found: Checkup) -> Iterator[Text]:
    """One line for each check, with its remedy below, and a last line that counts."""
    check = max((len(one.check) for one in found.findings), default=0)
    for one in found.findings:
        line = Text(f"{one.level.value:<4}", style=_COLOURS[one.level])
        line.append(f"  {one.check:<{check}}  {one.said}", style="default not bold not dim")
        yield line
        if one.todo:
            yield Text(f"{'':<{check + 8}}-> {one.todo}")
    counted = {level: sum(one.level == level for one in found.findings) for level in Level}
    words = ", ".join(f"{count} {level.value}" for level, count in counted.items() if count)
    yield Text(f"{'healthy' if found.healthy else 'not healthy'}: {words}", style="bold")
