"""What the node plugin can be told. Read strictly: a name that is not here is refused.

The command line and the chart fill this in; nothing else configures the plugin.
"""

from pathlib import PurePosixPath
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from driver.model.names import DRIVER
from driver.node.errors import SettingsError

# A unix socket's path has 108 bytes in Linux (sockaddr_un), the last of which must be zero.
SOCKET_PATH_MAX = 107

Effect = Literal["NoSchedule", "NoExecute"]
Port = Annotated[int, Meta(ge=0, le=65535)]


class NodeSettings(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Settings of one plugin process."""

    # The Kubernetes node that this process serves; also the name of its pool.
    node_name: str
    # The driver's name in slices, claims and classes.
    driver: str = DRIVER
    # UID of the plugin's pod. It makes the sockets of two instances differ, so that the new one of
    # a rolling update can start before the old one ends. Empty outside a pod.
    pod_uid: str = ""
    # COUNTxMODEL, such as 4xT4, publishes cards that are not there; empty reads NVML.
    simulate: str = ""
    # Where cards come from; empty: "simulated" with `simulate`, else "nvml". Other packages bring
    # others (entry points of the group `quadrant.inventories`).
    inventory: str = ""
    # A file of rules that add attributes to devices; empty: none. It may change at any time.
    attribute_rules: str = ""
    # Cards that can be cut into parts (MIG): "off" offers them whole, "static" the parts that
    # somebody has made; "dynamic" makes parts for the claims that want them.
    mig: Literal["off", "static", "dynamic"] = "off"
    # Where the keeper of MPS daemons is told what is wanted (`quadrant mps`); empty: no MPS here.
    mps_dir: str = ""
    # Where libvgpu.so and ld.so.preload of HAMi-core are on the host; empty: nothing keeps limits.
    hami_core_dir: str = ""
    # Several claims may hold one card, each with its part of memory and cores (KEP-5075).
    shareable: bool = True
    # Not given: in-cluster credentials, else KUBECONFIG, else the user's own file.
    kubeconfig: str | None = None
    # The kubelet's folders. `plugins_dir` holds the driver's socket and state, and must survive
    # a reboot; the kubelet must see both under the same paths.
    plugins_dir: str = "/var/lib/kubelet/plugins"
    registry_dir: str = "/var/lib/kubelet/plugins_registry"
    # Where this plugin writes CDI files; one of the container runtime's CDI folders.
    cdi_dir: str = "/var/run/cdi"
    # Where the NVIDIA Container Toolkit's CDI files may be.
    vendor_cdi_dirs: tuple[str, ...] = ("/etc/cdi", "/var/run/cdi")
    # How many claims are prepared at the same time.
    parallel_claims: Annotated[int, Meta(ge=1)] = 8
    # What an unhealthy card does to pods: keeps new ones away, or ends those that use it as well.
    unhealthy_effect: Effect = "NoSchedule"
    # XIDs that say nothing about a card, beside those that only programs cause.
    ignored_xids: tuple[Annotated[int, Meta(ge=1)], ...] = ()
    # Seconds without another XID after which one that asks for no reset is over.
    quiet_seconds: Annotated[int, Meta(ge=0)] = 300
    # Where the kubelet's probes are answered (grpc.health.v1); 0: nowhere.
    probe_port: Port = 0
    # Where Prometheus reads metrics, in plain HTTP; port 0: nowhere.
    metrics_host: str = "127.0.0.1"
    metrics_port: Port = 0

    def data_dir(self) -> PurePosixPath:
        """The driver's own folder: its socket, the checkpoint, locks."""
        return PurePosixPath(self.plugins_dir) / self.driver

    def metadata_dir(self) -> PurePosixPath:
        """Where the files are that containers get to read of their devices."""
        return self.data_dir() / "metadata"

    def driver_socket(self) -> PurePosixPath:
        """Where this instance serves DRAPlugin."""
        return self.data_dir() / f"dra{self._instance()}.sock"

    def registration_socket(self) -> PurePosixPath:
        """Where the kubelet finds this instance."""
        return PurePosixPath(self.registry_dir) / f"{self.driver}{self._instance()}-reg.sock"

    def _instance(self) -> str:
        return f"-{self.pod_uid}" if self.pod_uid else ""

    def check(self) -> None:
        """Raise `SettingsError` for what cannot work; ranges are those of the fields."""
        try:
            msgspec.convert(msgspec.to_builtins(self), NodeSettings)
        except msgspec.ValidationError as error:
            raise SettingsError(f"a setting is out of its range: {error}") from error
        if not self.node_name:
            raise SettingsError("nodeName is empty: give the name of the node this plugin runs on")
        if self.simulate and self.inventory not in ("", "simulated"):
            raise SettingsError(
                f"simulate is {self.simulate!r}, but the cards are to come from inventory "
                f"{self.inventory!r}: leave one of them empty"
            )
        folders = {
            "pluginsDir": self.plugins_dir,
            "registryDir": self.registry_dir,
            "cdiDir": self.cdi_dir,
            "mpsDir": self.mps_dir or "/",
            "hamiCoreDir": self.hami_core_dir or "/",
        }
        for name, folder in folders.items():
            if not folder.startswith("/"):
                raise SettingsError(f"{name} must be an absolute path, not {folder!r}")
        for socket in (self.driver_socket(), self.registration_socket()):
            _check_length(socket)


def _check_length(socket: PurePosixPath) -> None:
    length = len(bytes(str(socket), "utf-8"))
    if length > SOCKET_PATH_MAX:
        left = SOCKET_PATH_MAX - len(bytes(socket.name, "utf-8")) - 1
        raise SettingsError(
            f"socket path {socket} has {length} bytes, a unix socket takes {SOCKET_PATH_MAX}: "
            f"with the name {socket.name} its folder may have {max(left, 0)} bytes"
        )
