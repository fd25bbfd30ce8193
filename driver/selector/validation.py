"""What is checked of an expression once all its types are known.

Source: the validators that Kubernetes adds to cel-go's checker: the elements of a list or map
literal have one type, and the arguments of a format that is written out suit its clauses.
"""

from driver.selector.errors import CelError, CompileError
from driver.selector.functions.text_format import check_types
from driver.selector.syntax import ListNode, Literal, Node
from driver.selector.types import Type
from driver.selector.unify import Bindings, equivalent


class Validation:
    """Collects on the way what is checked at the end."""

    def __init__(self) -> None:
        self._literals: list[tuple[str, list[Type]]] = []
        self._formats: list[tuple[str, list[Type]]] = []
        self._elements: dict[int, list[Type]] = {}

    def note_literal(self, what: str, types: list[Type]) -> None:
        """These parts of one literal must have the same type."""
        self._literals.append((what, types))

    def note_elements(self, node: ListNode, types: list[Type]) -> None:
        """These are the types of a list literal's elements."""
        self._elements[node.id] = types

    def note_format(self, text: Node, args: tuple[Node, ...]) -> None:
        """A call of `format`; only one with a literal text and list can be checked."""
        match text, args:
            case Literal(value=str(clauses)), (ListNode() as given,) if not given.optional:
                self._formats.append((clauses, self._elements[given.id]))

    def check(self, bindings: Bindings) -> None:
        """Check all that was noted. Raises `CompileError`."""
        for text, types in self._formats:
            try:
                check_types(text, _final(bindings, types))
            except CelError as error:
                raise CompileError(f"compilation failed: {error}") from error
        for what, types in self._literals:
            _check_same(what, _final(bindings, types))


def _final(bindings: Bindings, types: list[Type]) -> list[Type]:
    return [bindings.substitute(one, to_dyn=True) for one in types]


def _check_same(what: str, types: list[Type]) -> None:
    for other in types[1:]:
        if not equivalent(types[0], other):
            raise CompileError(
                f"compilation failed: expected type '{types[0]}' but found '{other}': "
                f"all {what} of one literal must have the same type"
            )
