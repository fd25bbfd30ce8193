"""Telling users what was decided for a pod and why: one line to the log and to an Event."""

from typing import Protocol

import structlog

from driver.controller.planner import Plan
from driver.controller.sentence import node_told, nowhere_told
from driver.kube.events import Subject
from driver.model import events
from driver.model.core import Pod
from driver.model.events import EventKind

_log = structlog.get_logger(__name__)


class Tells(Protocol):
    """Where users are told; `driver.kube.events.Recorder` is one."""

    def record(self, subject: Subject, kind: EventKind, note: str) -> None:
        """Tell what happened to an object; never fails."""
        ...


def tell(tells: Tells, pod: Pod, plan: Plan) -> None:
    """Say what was decided for the pod and why."""
    if plan.node is not None:
        kind, note = events.NODE_NOMINATED, node_told(plan)
    elif plan.fits_nowhere:
        kind, note = events.NO_NODE_FITS, nowhere_told(plan)
    else:
        _log.info("left to the scheduler", pod=key_of(pod), why=plan.why)
        return
    _log.info(note, pod=key_of(pod), node=plan.node)
    tells.record(subject(pod), kind, note)


def subject(pod: Pod) -> Subject:
    """The pod as events refer to it."""
    metadata = pod.metadata
    return Subject(
        api_version="v1",
        kind="Pod",
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
    )


def key_of(pod: Pod) -> str:
    """The pod as logs name it."""
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
