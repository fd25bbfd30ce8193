"""The parts of objects that only the checks read.

Source of every field: `k8s.io/api` (admissionregistration/v1, apps/v1, discovery/v1,
authorization/v1).
"""

import msgspec

from driver.model.api import ApiStruct, ObjectMeta


class ServiceReference(ApiStruct, frozen=True, kw_only=True):
    """The Service that a webhook is called at."""

    namespace: str
    name: str


class ClientConfig(ApiStruct, frozen=True, kw_only=True):
    """How the API server calls a webhook, and whom it trusts (PEM in base64)."""

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: str = ""


class Webhook(ApiStruct, frozen=True, kw_only=True):
    """One webhook."""

    client_config: ClientConfig = ClientConfig()
    failure_policy: str = "Fail"


class WebhookConfiguration(ApiStruct, frozen=True, kw_only=True):
    """A MutatingWebhookConfiguration."""

    metadata: ObjectMeta
    webhooks: tuple[Webhook, ...] = ()


class WorkloadStatus(ApiStruct, frozen=True, kw_only=True):
    """How many pods there are and should be, of a Deployment or a DaemonSet."""

    ready_replicas: int = 0
    replicas: int = 0
    number_ready: int = 0
    desired_number_scheduled: int = 0


class Workload(ApiStruct, frozen=True, kw_only=True):
    """A Deployment or a DaemonSet."""

    metadata: ObjectMeta
    status: WorkloadStatus = WorkloadStatus()


class EndpointConditions(ApiStruct, frozen=True, kw_only=True):
    """Whether an endpoint answers; nothing said means yes."""

    ready: bool | None = None


class Endpoint(ApiStruct, frozen=True, kw_only=True):
    """One pod behind a Service."""

    conditions: EndpointConditions = EndpointConditions()


class EndpointSlice(ApiStruct, frozen=True, kw_only=True):
    """Pods behind a Service."""

    metadata: ObjectMeta
    endpoints: tuple[Endpoint, ...] = ()


class Named(ApiStruct, frozen=True, kw_only=True):
    """Anything of which only the name, or the annotations, count."""

    metadata: ObjectMeta


class Right(ApiStruct, frozen=True, kw_only=True):
    """One thing that somebody may do; the empty namespace stands for all."""

    verb: str
    group: str = ""
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {resource}{f'.{self.group}' if self.group else ''}"


class Verdict(msgspec.Struct, frozen=True):
    """The answer to an access review."""

    allowed: bool = False


class Reviewed(msgspec.Struct, frozen=True):
    """An access review as it comes back."""

    status: Verdict = Verdict()
