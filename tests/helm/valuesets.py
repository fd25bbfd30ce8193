"""Values that together make every object of the chart, and set nearly every option."""

from tests.helm.chart import Object

# Of the Prometheus Operator and of cert-manager; Kubernetes has no schema for them.
OTHERS = {"PodMonitor", "PrometheusRule", "Certificate"}

_PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
_ON_DEMAND = {"create": True, "labels": {"team": "gpus"}}
_PODS = {
    "nodeSelector": {"gpu": "true"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
            }
        }
    },
    "resources": {"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}},
}
VALUES: dict[str, Object] = {
    "as it comes": {},
    "simulated": {"inventory": {"simulated": {"profile": "8xA100-SXM4-40GB"}}},
    "certificates of others": {
        "certificates": {"secretName": "mine", "caBundle": "Y2E=", "annotations": {"a": "b"}}
    },
    "cert-manager": {"certificates": {"secretName": "mine", "issuer": {"name": "ca"}}},
    "ways of sharing": {
        "node": {
            "timeSlicing": True,
            "mps": {"enabled": True, "resources": _PODS["resources"]},
            "settings": {"mig": "dynamic", "hamiCoreDir": "/usr/local/vgpu"},
        },
        "deviceClass": {
            "extendedResourceName": "nvidia.com/gpu",
            "models": ["H100", "RTX 6000 Ada"],
            "migProfiles": ["1g.10gb", "1g.10gb+me"],
        },
    },
    "seen": {
        "metrics": {
            "node": True,
            "from": [_PEER, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
            "podMonitor": _ON_DEMAND,
            "rules": _ON_DEMAND,
            "dashboard": _ON_DEMAND,
        },
        "ui": {"service": True, "from": [_PEER]},
        "tracing": {"endpoint": "http://otel-collector.monitoring:4318"},
    },
    "all else": {
        "image": {"digest": f"sha256:{'0' * 64}", "pullSecrets": ["registry"]},
        "podWebhook": {
            "namespaceSelector": {
                "matchLabels": {"a": "b"},
                "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}],
            }
        },
        "controller": {**_PODS, "replicas": 3, "settings": {"defaults": {"weights": "memory=2"}}},
        "node": {
            **_PODS,
            "runtimeClassName": "nvidia",
            "attributeRules": [{"match": "true", "attributes": {"tier": "gold"}}],
            "settings": {"ignoredXids": [79, 94], "shareable": False},
        },
    },
}
