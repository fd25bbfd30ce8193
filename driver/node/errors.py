"""What can go wrong on the node, each in a sentence that names the object and the way out."""

from driver.model.errors import QuadrantError


class NodeError(QuadrantError):
    """Any error of the node plugin."""


class SettingsError(NodeError):
    """The plugin cannot run with these settings."""


class InventoryError(NodeError):
    """The cards of this node cannot be read."""


class ClaimRefusedError(NodeError):
    """This claim must not be prepared as it is now; the kubelet asks again later."""


class DoubleUseError(ClaimRefusedError):
    """What the claim was given is in use by another claim that is prepared on this node."""


class StorageError(NodeError):
    """A file of ours cannot be read or written; nothing was changed by the call that failed."""


class HardwareError(NodeError):
    """A card did not do what it was told."""


class CardFailedError(HardwareError):
    """A card takes no orders at all until it is reset; asking it again does not help."""
