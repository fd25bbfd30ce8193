"""How types match: whether a value of one type may stand where another is asked for.

Source of the rules: cel-go's type checker. Type parameters are bound as a side effect of a match
that succeeds, and keep what they had when it fails.
"""

from driver.selector.errors import CompileError
from driver.selector.types import DYN, Type

# Types that null may stand for.
_NULLABLE = frozenset({"null", "struct", "opaque", "duration", "timestamp"})
# Far more than an expression of the longest allowed length needs.
_MAX_STEPS = 1_000_000
_COMPOUND = frozenset({"list", "map", "opaque"})


class Bindings:
    """What the type parameters of one expression stand for so far."""

    def __init__(self) -> None:
        self._bound: dict[Type, Type] = {}
        self._fresh = 0
        self._steps = 0

    def fresh(self) -> Type:
        """A type parameter that nobody has used yet."""
        self._fresh += 1
        return Type("param", f"_var{self._fresh}")

    def assignable(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        """Whether all given types may stand for the wanted ones; binds parameters if so."""
        before = self._bound.copy()
        if len(given) == len(wanted) and self._all_match(given, wanted):
            return True
        self._bound = before
        return False

    def substitute(self, found: Type, *, to_dyn: bool = False) -> Type:
        """The type with its parameters replaced by what they stand for (or, at last, by dyn)."""
        bound = self._bound.get(found)
        if bound is not None:
            return self.substitute(bound, to_dyn=to_dyn)
        if found.kind == "param":
            return DYN if to_dyn else found
        if not found.params:
            return found
        params = tuple(self.substitute(param, to_dyn=to_dyn) for param in found.params)
        return Type(found.kind, found.name, params)

    def _all_match(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        return all(self._match(one, other) for one, other in zip(given, wanted, strict=True))

    def _match(self, given: Type, wanted: Type) -> bool:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise CompileError("compilation failed: the types take too long to work out")
        if wanted.kind == "param":
            valid, known = self._bind(given, wanted)
            if valid or known:
                return valid
        if given.kind == "param":
            return self._bind(wanted, given)[0]
        if "dyn" in (given.kind, wanted.kind):
            return True
        if "null" in (given.kind, wanted.kind):
            return {given.kind, wanted.kind} <= _NULLABLE
        if given.kind != wanted.kind:
            return False
        if given.kind in _COMPOUND:
            return given.name == wanted.name and self._all_match(given.params, wanted.params)
        return given.kind == "type" or given == wanted

    def _bind(self, given: Type, param: Type) -> tuple[bool, bool]:
        """Whether the parameter may stand for the type, and whether it stood for one before."""
        if given == param:
            return True, True
        bound = self._bound.get(param)
        if bound is None:
            if self._mentions(given, param):
                return False, False
            self._bound[param] = given
            return True, False
        if given == bound:
            return True, True
        if not self._match(given, bound):
            return False, True
        general = most_general(given, bound)
        if not self._mentions(general, param):
            self._bound[param] = general
        return True, True

    def _mentions(self, within: Type, param: Type) -> bool:
        left, seen = [within], set()
        while left:
            found = left.pop()
            if found == param:
                return True
            left += found.params
            if found.kind == "param" and found not in seen:
                seen.add(found)
                left += [self._bound[found]] if found in self._bound else []
        return False


def most_general(one: Type, other: Type) -> Type:
    """Of two types that match, the one that says less."""
    return one if _says_no_more(one, other) else other


def _says_no_more(one: Type, other: Type) -> bool:
    if one.kind in ("dyn", "param"):
        return True
    if other.kind in ("dyn", "param") or one.kind != other.kind:
        return False
    if one.kind not in _COMPOUND | {"type"}:
        return one == other
    return (
        one.name == other.name
        and len(one.params) == len(other.params)
        and all(_says_no_more(a, b) for a, b in zip(one.params, other.params, strict=True))
    )


def equivalent(one: Type, other: Type) -> bool:
    """Whether two types are the same but for the names of their parameters."""
    if one.kind != other.kind or len(one.params) != len(other.params):
        return False
    if one.kind != "param" and one.name != other.name:
        return False
    return all(equivalent(a, b) for a, b in zip(one.params, other.params, strict=True))
