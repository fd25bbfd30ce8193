"""Annotations in our own domain that mean nothing where they stand: slips of the pen.

Without this they would be passed over in silence, and the devices would be others than asked for.
Pure; it knows keys, not values.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from driver.model.api import ObjectMeta
from driver.model.core import Pod
from driver.model.deviceclass import DeviceClass
from driver.model.errors import QuadrantError
from driver.model.keys import ALL, On, Sort, annotations
from driver.model.names import DOMAIN
from driver.model.resourceclaim import ResourceClaim, ResourceClaimTemplate

_UNDERSTOOD = {kind: annotations(kind) for kind in On}
_EVERYWHERE = {key.name: key for key in ALL if key.sort is Sort.ANNOTATION}


class UnknownAnnotationError(QuadrantError):
    """An annotation of our domain means nothing on the object; the text names what would."""


def check(pod: Pod, claims: Iterable[ResourceClaim]) -> None:
    """Raise `UnknownAnnotationError` for one on a pod that is created, or on one of its claims."""
    found = list(complaints(pod.metadata, On.POD, f"pod {_name(pod.metadata)}"))
    for claim in claims:
        found += complaints(claim.metadata, On.CLAIM, f"claim {_name(claim.metadata)}")
    if found:
        raise UnknownAnnotationError("; ".join(found))


def around(
    templates: Iterable[ResourceClaimTemplate],
    classes: Iterable[DeviceClass],
    namespace: ObjectMeta,
) -> Iterator[str]:
    """A sentence for each on what a pod rests on: the pod's author cannot mend these."""
    for template in templates:
        what = f"template {template.metadata.name} (its claims have those of spec.metadata)"
        yield from complaints(template.metadata, On.TEMPLATE, what)
    for device_class in {one.metadata.name: one for one in classes}.values():
        what = f"DeviceClass {device_class.metadata.name} (its policies are in spec.config)"
        yield from complaints(device_class.metadata, On.CLASS, what)
    yield from complaints(namespace, On.NAMESPACE, f"namespace {namespace.name}")


def complaints(metadata: ObjectMeta, kind: On, what: str) -> Iterator[str]:
    """A sentence for each annotation of an object of this kind; `what` is the object in words."""
    for name in sorted(metadata.annotations):
        if _is_ours(name) and name not in _UNDERSTOOD[kind]:
            yield f"annotation {name} of {what} {_complaint(name, kind)}"


def _name(metadata: ObjectMeta) -> str:
    return metadata.name or metadata.generate_name or "(of a template)"


def _is_ours(name: str) -> bool:
    # The API takes upper case as well: such a key is a slip, too.
    domain = name.partition("/")[0].lower()
    return domain == DOMAIN or domain.endswith(f".{DOMAIN}")


def _complaint(name: str, kind: On) -> str:
    known = _EVERYWHERE.get(name)
    if known is not None:
        return f"means nothing on a {kind}, only on: {', '.join(known.on)}"
    users = (key.name for key in _UNDERSTOOD[kind].values() if key.for_users())
    here = {key.partition("/")[2]: key for key in users if _is_ours(key)}
    nearest = get_close_matches(name.partition("/")[2].lower(), here, n=1)
    guess = f"; did you mean {here[nearest[0]]}?" if nearest else ""
    return f"is not known{guess} (known on a {kind}: {', '.join(here.values()) or 'none'})"
