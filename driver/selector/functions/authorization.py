"""Kubernetes' authorization checks, which no selector can reach but by a value of type dyn.

There is no `authorizer` variable, so no value ever has one of these types: a call compiles where
its target's type is unknown, and fails when it is made.
"""

from driver.selector.errors import no_such_overload
from driver.selector.functions.library import Overload, method
from driver.selector.types import BOOL, STRING, Type


def _type(name: str) -> Type:
    return Type("struct", f"kubernetes.authorization.{name}")


_AUTHORIZER, _DECISION = _type("Authorizer"), _type("Decision")
_PATH, _GROUP, _RESOURCE = _type("PathCheck"), _type("GroupCheck"), _type("ResourceCheck")


def _unreachable(*_: object) -> object:
    raise no_such_overload()


def _steps(*names: str) -> list[Overload]:
    return [method(name, (_RESOURCE, STRING), _RESOURCE, _unreachable) for name in names]


OVERLOADS: tuple[Overload, ...] = (
    method("path", (_AUTHORIZER, STRING), _PATH, _unreachable),
    method("group", (_AUTHORIZER, STRING), _GROUP, _unreachable),
    method("serviceAccount", (_AUTHORIZER, STRING, STRING), _AUTHORIZER, _unreachable),
    method("resource", (_GROUP, STRING), _RESOURCE, _unreachable),
    *_steps("subresource", "namespace", "name", "fieldSelector", "labelSelector"),
    method("check", (_PATH, STRING), _DECISION, _unreachable),
    method("check", (_RESOURCE, STRING), _DECISION, _unreachable),
    method("allowed", (_DECISION,), BOOL, _unreachable),
    method("errored", (_DECISION,), BOOL, _unreachable),
    method("error", (_DECISION,), STRING, _unreachable),
    method("reason", (_DECISION,), STRING, _unreachable),
)
