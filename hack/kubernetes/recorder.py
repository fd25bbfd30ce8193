"""How does a cluster grow so that a crash at any point leaves a record? Must not know the order."""

import os
import time

from . import component, process, state
from .errors import ClusterError
from .layout import Layout
from .process import Identity
from .state import Component, State


class Recorder:
    """A cluster on its way up. Its state is on the disk whenever a new program runs."""

    def __init__(self, place: Layout, known: State) -> None:
        self.place = place
        self.state = known
        state.save(place, known)

    def start(self, part: Component) -> Component:
        """Start a component and record it. It is not ready yet."""
        started = component.start(self.state, part)
        self.state = self.state.replace(started)
        state.save(self.place, self.state)
        return started

    def hold(self, part: Component) -> Identity:
        """Start an idle process and wait until it is in namespaces of its own."""
        holder = self.start(part).process
        deadline = time.monotonic() + 10
        while holder and process.alive(holder) and time.monotonic() < deadline:
            if process.network_namespace(holder.pid) != process.network_namespace(os.getpid()):
                return holder
            time.sleep(0.01)
        raise ClusterError(f"{part.name} got no namespaces of its own: see {part.log}")
