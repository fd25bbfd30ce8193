"""What the user may do with these commands, and whether our service accounts may do their work.

The API server's own access reviews answer, so that every authoriser counts.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from driver.cli.checkup.evidence import may_not
from driver.cli.checkup.finding import Finding, fail, ok, skip, warn
from driver.cli.checkup.objects import Reviewed, Right
from driver.kube.errors import Forbidden, NotFound
from driver.kube.rest import Rest
from driver.wire.encode import builtins

_RESOURCE, _LEASES = "resource.k8s.io", "coordination.k8s.io"
_EVENTS = "events.k8s.io"
_REVIEWS = "/apis/authorization.k8s.io/v1"
_CONTROLLER, _NODE = "quadrant-controller", "quadrant-node"


def _rights(verbs: str, resources: str, group: str = "", name: str = "") -> Iterator[Right]:
    for resource in resources.split():
        main, _, sub = resource.partition("/")
        for verb in verbs.split():
            yield Right(verb=verb, group=group, resource=main, subresource=sub, name=name)


# What `matrix`, `claims`, `explain` and `snapshot` list, in all namespaces.
USER: Sequence[Right] = (
    *_rights("list", "resourceslices resourceclaims deviceclasses", _RESOURCE),
    *_rights("list", "devicetaintrules resourceclaimtemplates", _RESOURCE),
    *_rights("list", "nodes namespaces pods events"),
)
CORDON: Sequence[Right] = tuple(_rights("get patch", "nodes"))

# As in the chart; tests compare. What it needs for certificates shows in the webhooks.
CONTROLLER: Sequence[Right] = (
    *_rights("get list watch patch", "resourceclaims", _RESOURCE),
    *_rights("patch", "resourceclaims/status resourceclaims/binding", _RESOURCE),
    *_rights("get list create patch delete", "resourceclaimtemplates", _RESOURCE),
    *_rights("list watch create", "resourceslices deviceclasses", _RESOURCE),
    *_rights("list watch create delete", "devicetaintrules", _RESOURCE),
    *_rights("list watch", "nodes namespaces"),
    *_rights("list watch patch", "pods"),
    *_rights("patch", "pods/status"),
    *_rights("create patch", "events", _EVENTS),
)
# In its own namespace.
CONTROLLER_HOME: Sequence[Right] = (
    *_rights("get patch", "leases", _LEASES, name=_CONTROLLER),
    *_rights("create", "leases", _LEASES),
)
NODE: Sequence[Right] = (
    *_rights("get list watch", "nodes"),
    *_rights("get list", "resourceclaims", _RESOURCE),
    *_rights("patch", "resourceclaims/status", _RESOURCE),
    *_rights("associated-node:patch", "resourceclaims/driver", _RESOURCE),
    *_rights("list watch create patch delete", "resourceslices", _RESOURCE),
    *_rights("create patch", "events", _EVENTS),
)


async def check(rest: Rest, home: str, driver: str) -> list[Finding]:
    """The user's rights, and those of our service accounts where they may be asked for."""
    found = [await _user(rest)]
    for account, rights in (
        (_CONTROLLER, (*CONTROLLER, *_in(home, CONTROLLER_HOME))),
        (_NODE, (*_of(driver, NODE),)),
    ):
        found.append(await _account(rest, home, account, rights))
    return found


def _of(driver: str, rights: Iterable[Right]) -> Iterator[Right]:
    """Devices of a claim are written in the name of a driver."""
    for right in rights:
        named = right.subresource == "driver"
        yield msgspec.structs.replace(right, name=driver) if named else right


def _in(namespace: str, rights: Iterable[Right]) -> Iterator[Right]:
    for right in rights:
        yield msgspec.structs.replace(right, namespace=namespace)


async def _user(rest: Rest) -> Finding:
    check = "your rights"
    try:
        missing = await _missing(rest, USER, "selfsubjectaccessreviews", "")
    except Forbidden as error:
        return skip(check, may_not(error))
    if missing:
        todo = "ask for a ClusterRole with these verbs; commands name what they miss"
        return warn(check, f"you may not {_listed(missing)}", todo)
    no_cordon = await _missing(rest, CORDON, "selfsubjectaccessreviews", "")
    if no_cordon:
        return ok(check, f"enough to look; not to cordon ({_listed(no_cordon)})")
    return ok(check, "enough for every command")


async def _account(rest: Rest, home: str, account: str, rights: Sequence[Right]) -> Finding:
    check = f"rights of {account}"
    try:
        await rest.get(f"/api/v1/namespaces/{home}/serviceaccounts/{account}")
    except NotFound:
        return skip(check, f"there is no such ServiceAccount in namespace {home}")
    except Forbidden as error:
        return skip(check, may_not(error))
    try:
        user = f"system:serviceaccount:{home}:{account}"
        missing = await _missing(rest, rights, "subjectaccessreviews", user)
    except Forbidden as error:
        return skip(check, may_not(error))
    if missing:
        return fail(check, f"it may not {_listed(missing)}", "install the chart's RBAC again")
    return ok(check, f"all {len(rights)} that it needs")


async def _missing(rest: Rest, rights: Sequence[Right], kind: str, user: str) -> list[Right]:
    answers = await asyncio.gather(*(_allowed(rest, right, kind, user) for right in rights))
    return [right for right, allowed in zip(rights, answers, strict=True) if not allowed]


async def _allowed(rest: Rest, right: Right, kind: str, user: str) -> bool:
    spec = {"resourceAttributes": builtins(right)} | ({"user": user} if user else {})
    kinds = {
        "selfsubjectaccessreviews": "SelfSubjectAccessReview",
        "subjectaccessreviews": "SubjectAccessReview",
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kinds[kind], "spec": spec}
    # Asking twice is the same as asking once.
    answer = await rest.create(f"{_REVIEWS}/{kind}", msgspec.json.encode(body), repeatable=True)
    return msgspec.json.decode(answer, type=Reviewed).status.allowed


def _listed(rights: Iterable[Right]) -> str:
    """Verbs of one resource together: `list, watch nodes`."""
    verbs: dict[str, list[str]] = {}
    for right in rights:
        verb, _, what = str(right).partition(" ")
        verbs.setdefault(what, []).append(verb)
    return "; ".join(f"{', '.join(dict.fromkeys(one))} {what}" for what, one in verbs.items())
