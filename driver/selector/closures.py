"""What compiling a checked expression gives: one closure, and what it needs."""

import msgspec

from driver.selector.calls import compile_call
from driver.selector.checked import Checked
from driver.selector.compiler import Compiler, Rules
from driver.selector.frame import Run
from driver.selector.loops import compile_fold
from driver.selector.syntax import (
    Bind,
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    OptMap,
    Select,
    StructNode,
)

_RULES: Rules = {
    Literal: Compiler.literal,
    Ident: Compiler.ident,
    Select: Compiler.select,
    Call: compile_call,
    ListNode: Compiler.list_literal,
    MapNode: Compiler.map_literal,
    StructNode: Compiler.struct,
    Fold: compile_fold,
    Bind: Compiler.bind,
    OptMap: Compiler.opt_map,
}


class Closure(msgspec.Struct, frozen=True):
    """A compiled expression, and how many variables a frame must hold."""

    run: Run
    variables: int


def compile_node(node: Node, checked: Checked, *, counting: bool) -> Closure:
    """The closure of an expression. Raises `CompileError` where a constant part of it fails."""
    compiler = Compiler(checked, _RULES, counting=counting)
    run = compiler.compile(node).run
    return Closure(run, compiler.variables)
