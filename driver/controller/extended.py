"""Which extended resource names lead to which DeviceClass (KEP-5004), and which classes are ours.

Source of the rule on names that clash: `k8s.io/dynamic-resource-allocation/deviceclass`, 1.37.
"""

from collections.abc import Iterable, Mapping

from driver.model.deviceclass import DeviceClass

# Every class can be asked for under this name, without an explicit one.
IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"


def is_ours(device_class: DeviceClass, driver: str) -> bool:
    """Whether devices of our driver may be in a class.

    Only an evaluation against devices could tell for sure, and there may be none yet. A class
    that names the driver nowhere has selectors for somebody else's devices; one that has no
    selectors holds every device. Wrongly taken for ours, a pod waits for its placement a moment.
    """
    expressions = [item.cel.expression for item in device_class.spec.selectors if item.cel]
    return not expressions or any(driver in expression for expression in expressions)


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Explicit extended resource names with the class that each leads to.

    Of several classes with one name the newest counts, then the lower class name.
    """
    by_name = sorted(classes, key=lambda item: item.metadata.name, reverse=True)
    oldest_first = sorted(by_name, key=lambda item: item.metadata.creation_timestamp or "")
    return {
        item.spec.extended_resource_name: item.metadata.name
        for item in oldest_first
        if item.spec.extended_resource_name
    }


def class_of(resource: str, by_resource: Mapping[str, str]) -> str | None:
    """The class that a resource name leads to, explicitly or by its own name."""
    if resource in by_resource:
        return by_resource[resource]
    if resource.startswith(IMPLICIT_PREFIX):
        return resource.removeprefix(IMPLICIT_PREFIX)
    return None
