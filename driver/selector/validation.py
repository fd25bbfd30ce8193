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
        self._formats: list[tuple[str, list[list[Type]]]] = []
        self._types: dict[int, Type] = {}

    def note_literal(self, what: str, types: list[Type]) -> None:
        """These parts of one literal must have the same type."""
        self._literals.append((what, types))

    def note_elements(self, node: ListNode, types: list[Type]) -> None:
        """These are the types of a list literal's elements."""
        for element, found in zip(node.elements, types, strict=True):
            self._types[element.id] = found

    def note_format(self, text: Node, args: tuple[Node, ...]) -> None:
        """A call of `format`; only one with a literal text and list can be checked."""
        match text, args:
            case Literal(value=str(clauses)), (ListNode() as given,) if not given.optional:
                self._formats.append((clauses, [*map(self._written_out, given.elements)]))

    def _written_out(self, node: Node) -> list[Type]:
        """The type of an argument, and of what is inside of it where that is written out."""
        if not isinstance(node, ListNode):
            return [self._types[node.id]]
        inner = [one for element in node.elements for one in self._written_out(element)]
        return [self._types[node.id], *inner]

    def check(self, bindings: Bindings) -> None:
        """Check all that was noted. Raises `CompileError`."""
        for text, arguments in self._formats:
            try:
                check_types(text, [_final(bindings, one) for one in arguments])
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
