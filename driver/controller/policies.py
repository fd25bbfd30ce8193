"""Which policy holds for a claim, on each axis, with which weights, and who said so.

Order of precedence: claim annotation, pod annotation, DeviceClass configuration, namespace
annotation, the driver's default. This module does not know how a policy scores.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache

import msgspec

from driver.model import names
from driver.model.api import ObjectMeta
from driver.model.core import Pod
from driver.model.deviceclass import DeviceClass
from driver.model.errors import QuadrantError
from driver.model.gpuconfig import POLICY_API_VERSION, POLICY_KIND
from driver.model.resourceclaim import ResourceClaim
from driver.policy import weights
from driver.policy.registry import BUILT_IN, Registry
from driver.policy.weights import Weights

_LONGEST = 128

# The first annotation that is set decides, so ours goes before HAMi's.
NODE_ANNOTATIONS = (names.NODE_POLICY, names.HAMI_NODE_POLICY)
GPU_ANNOTATIONS = (names.GPU_POLICY, names.HAMI_GPU_POLICY)
WEIGHTS_ANNOTATIONS = (names.SCORING_WEIGHTS, names.HAMI_SCORING_WEIGHTS)
_HAMI = frozenset({names.HAMI_NODE_POLICY, names.HAMI_GPU_POLICY})
# What HAMi calls by another name than we do.
_HAMI_VALUES = {"topology-aware": "topology"}


class Source(IntEnum):
    """Who set a policy; the lower number goes first."""

    CLAIM = 0
    POD = 1
    DEVICE_CLASS = 2
    NAMESPACE = 3
    DEFAULT = 4


class Setting(msgspec.Struct, frozen=True):
    """One policy, or weights; who set it, and where exactly, in words for the user."""

    value: str
    source: Source
    where: str


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """The driver's own policies, where nobody says anything; empty `weights` weigh nothing."""

    node: str
    gpu: str
    weights: str = ""


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """The policies of one claim; `weights` are valid, and empty where nobody said any."""

    node: Setting
    gpu: Setting
    weights: Setting

    def weighting(self) -> Weights | None:
        """The weights for scorers."""
        return weights.parse(self.weights.value)


def strongest(found: Sequence[Policies]) -> Policies:
    """Of several claims, the strongest setting decides on each axis, the first of equals."""
    return Policies(
        node=min((one.node for one in found), key=_source),
        gpu=min((one.gpu for one in found), key=_source),
        weights=min((one.weights for one in found), key=_source),
    )


def _source(setting: Setting) -> Source:
    return setting.source


class UnknownPolicyError(QuadrantError):
    """A policy or weights that mean nothing; the text names the place and what was expected."""


class _ClassConfig(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    node_policy: str = ""
    gpu_policy: str = ""
    scoring_weights: str = ""


class _Axis(msgspec.Struct, frozen=True):
    """What tells one setting from the others."""

    annotations: tuple[str, ...]
    in_class: Callable[[_ClassConfig], str]
    check: Callable[[Registry, str], str | None]


def resolve(
    claim: ResourceClaim | None,
    pod: Pod | None,
    classes: Mapping[str, DeviceClass],
    namespace: ObjectMeta | None,
    *,
    defaults: Defaults,
    driver: str = names.DRIVER,
    registry: Registry = BUILT_IN,
) -> Policies:
    """The policies that hold for this claim; a part that is None says nothing.

    Raises `UnknownPolicyError` when the setting that decides is unknown. What is overruled is
    not looked at.
    """
    asked = tuple(_class_configs(claim, classes, driver)) if claim else ()

    def on(axis: _Axis, default: str) -> Setting:
        found = _settings(axis, claim=claim, pod=pod, asked=asked, namespace=namespace)
        fallback = Setting(default, Source.DEFAULT, "the driver's default")
        return _checked(next(found, fallback), axis, registry)

    return Policies(
        node=on(_NODE, defaults.node),
        gpu=on(_GPU, defaults.gpu),
        weights=on(_WEIGHTS, defaults.weights),
    )


def own(
    metadata: ObjectMeta, what: str, source: Source, registry: Registry = BUILT_IN
) -> dict[str, str]:
    """The policies and weights that an object sets by itself, as annotations under our own names.

    Raises `UnknownPolicyError` for an unknown one, also where something stronger overrules it.
    """
    found: dict[str, str] = {}
    for name, axis in (
        (names.NODE_POLICY, _NODE),
        (names.GPU_POLICY, _GPU),
        (names.SCORING_WEIGHTS, _WEIGHTS),
    ):
        setting = _annotated(axis, metadata, what, source)
        if setting is not None:
            found[name] = _checked(setting, axis, registry).value
    return found


def _settings(
    axis: _Axis,
    *,
    claim: ResourceClaim | None,
    pod: Pod | None,
    asked: tuple[tuple[str, _ClassConfig], ...],
    namespace: ObjectMeta | None,
) -> Iterator[Setting]:
    """All settings for one axis, the strongest first."""
    if claim is not None:
        what = f"claim {claim.metadata.namespace}/{claim.metadata.name or '(unnamed)'}"
        yield from _maybe(_annotated(axis, claim.metadata, what, Source.CLAIM))
    if pod is not None:
        name = pod.metadata.name or pod.metadata.generate_name
        what = f"pod {pod.metadata.namespace}/{name}"
        yield from _maybe(_annotated(axis, pod.metadata, what, Source.POD))
    for name, config in asked:
        value = axis.in_class(config).strip()
        if value:
            yield Setting(value, Source.DEVICE_CLASS, f"DeviceClass {name}")
    if namespace is not None:
        what = f"namespace {namespace.name}"
        yield from _maybe(_annotated(axis, namespace, what, Source.NAMESPACE))


def _maybe(setting: Setting | None) -> tuple[Setting, ...]:
    return () if setting is None else (setting,)


def _annotated(axis: _Axis, metadata: ObjectMeta, what: str, source: Source) -> Setting | None:
    for name in axis.annotations:
        # An empty value is what a template leaves behind that had nothing to fill in.
        value = metadata.annotations.get(name, "").strip()
        if value:
            policy = _from_hami(value) if name in _HAMI else value
            return Setting(policy, source, f"annotation {name} of {what}")
    return None


def _from_hami(value: str) -> str:
    return ",".join(_HAMI_VALUES.get(part.strip(), part.strip()) for part in value.split(","))


def _class_configs(
    claim: ResourceClaim, classes: Mapping[str, DeviceClass], driver: str
) -> Iterator[tuple[str, _ClassConfig]]:
    """What the classes of a claim say, in the order of its requests."""
    for name in class_names(claim):
        device_class = classes.get(name)
        for entry in device_class.spec.config if device_class else ():
            if entry.opaque is not None and entry.opaque.driver == driver:
                config = _class_config(bytes(entry.opaque.parameters))
                if config is not None:
                    yield name, config


def class_names(claim: ResourceClaim) -> dict[str, None]:
    """Each class that a claim names once, in order."""
    found: dict[str, None] = {}
    for request in claim.spec.devices.requests:
        for choice in (request.exactly, *request.first_available):
            if choice is not None:
                found[choice.device_class_name] = None
    return found


@lru_cache(maxsize=256)
def _class_config(parameters: bytes) -> _ClassConfig | None:
    """Our policies in one opaque configuration; other kinds are the node plugin's business."""
    try:
        config = msgspec.json.decode(parameters, type=_ClassConfig)
    except msgspec.MsgspecError:
        return None
    ours = config.kind == POLICY_KIND and config.api_version == POLICY_API_VERSION
    return config if ours else None


def _checked(setting: Setting, axis: _Axis, registry: Registry) -> Setting:
    if len(setting.value) > _LONGEST:
        # Annotations may have 256 KiB, and what is checked is also remembered.
        raise UnknownPolicyError(f"{setting.where}: it may have at most {_LONGEST} characters")
    complaint = axis.check(registry, setting.value)
    if complaint is not None:
        raise UnknownPolicyError(f"{setting.where}: {complaint}")
    return setting


@lru_cache(maxsize=1024)
def _node_complaint(registry: Registry, policy: str) -> str | None:
    return _complaint(registry.node_scorer, policy)


@lru_cache(maxsize=1024)
def _gpu_complaint(registry: Registry, policy: str) -> str | None:
    return _complaint(registry.objective, policy)


@lru_cache(maxsize=1024)
def _weights_complaint(_: Registry, text: str) -> str | None:
    return _complaint(weights.parse, text)


def _complaint(build: Callable[[str], object], text: str) -> str | None:
    try:
        build(text)
    except QuadrantError as error:
        return str(error)
    return None


_NODE = _Axis(NODE_ANNOTATIONS, lambda config: config.node_policy, _node_complaint)
_GPU = _Axis(GPU_ANNOTATIONS, lambda config: config.gpu_policy, _gpu_complaint)
_WEIGHTS = _Axis(WEIGHTS_ANNOTATIONS, lambda config: config.scoring_weights, _weights_complaint)
