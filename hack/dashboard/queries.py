"""Queries in PromQL, narrowed to what is chosen on top of the dashboard.

Every replica of the controller tells what it knows of the cluster, hence the maximum over replicas;
what is counted is counted where it happens, hence sums.
"""

from hack.dashboard.sheet import Query

# A label that no series has is matched by All.
CLUSTER = 'cluster=~"$cluster"'
MODEL = f'{CLUSTER}, model=~"$model"'
NODE = f'{CLUSTER}, node=~"$node"'
NAMESPACE = f'{NODE}, claim_namespace=~"$namespace"'


def gpus(state: str) -> str:
    """GPUs of this state, for each model."""
    return f'max by (cluster, model) (quadrant_gpus{{{MODEL}, state="{state}"}})'


def memory(state: str) -> str:
    """Memory of this state, of all models together."""
    return f'sum(max by (cluster, model) (quadrant_gpu_memory_bytes{{{MODEL}, state="{state}"}}))'


def rate(metric: str, by: str, where: str = CLUSTER) -> str:
    """How often a second, for each value of these labels."""
    return f"sum by ({by}) (rate({metric}{{{where}}}[$__rate_interval]))"


def quantiles(metric: str) -> list[Query]:
    """The times that one half and 99 of 100 stay below."""
    return [
        (f"histogram_quantile({part}, {rate(f'{metric}_bucket', 'le')})", name)
        for part, name in ((0.5, "half"), (0.99, "99 of 100"))
    ]


def worst(metric: str, label: str, where: str = CLUSTER) -> list[Query]:
    """The time that 99 of 100 stay below, for each value of a label."""
    buckets = rate(f"{metric}_bucket", f"le, {label}", where)
    return [(f"histogram_quantile(0.99, {buckets})", f"{{{{{label}}}}}")]
