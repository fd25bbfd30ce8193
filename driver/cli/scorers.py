"""Which policies other packages bring along: entry points of the group `quadrant.scorers`.

An entry point's name is the policy's name; what it points to takes `driver.policy.registry.Options`
and returns a scorer (`driver.policy.view.Scorer`). It is imported when the policy is first used.
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from driver.policy.registry import Make, Options, PolicyError, Registry
from driver.policy.view import Scorer

GROUP = "quadrant.scorers"


def installed() -> Registry:
    """All policies, those of installed packages included; raises `PolicyError` for a clash."""
    return registry(entry_points(group=GROUP))


def registry(found: Iterable[EntryPoint]) -> Registry:
    """Our policies and these; raises `PolicyError` where two have one name."""
    by_name: dict[str, EntryPoint] = {}
    for entry in found:
        known = by_name.setdefault(entry.name, entry)
        if known.value != entry.value:
            raise PolicyError(
                f"policy {entry.name!r} comes from two packages, {_origin(known)} and "
                f"{_origin(entry)}: uninstall one of them, or let it use another name"
            )
    return Registry({name: _lazily(entry) for name, entry in by_name.items()})


def _lazily(entry: EntryPoint) -> Make:
    def make(options: Options) -> Scorer:
        try:
            scorer: Scorer = entry.load()(options)
        except Exception as error:
            raise PolicyError(
                f"policy {entry.name!r} of {_origin(entry)} cannot be made: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not callable(getattr(scorer, "score", None)):
            raise PolicyError(
                f"policy {entry.name!r} of {_origin(entry)} is no scorer: {entry.value} returned "
                f"a {type(scorer).__name__}; expected an object with score(view, choice)"
            )
        return scorer

    return make


def _origin(entry: EntryPoint) -> str:
    return f"{entry.dist.name} ({entry.value})" if entry.dist is not None else entry.value
