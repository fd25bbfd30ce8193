"""What Prometheus reads of a node's devices."""

from pathlib import Path

from tests.monitoring import scraped


async def test_memory_is_told_by_the_namespace_that_holds_it(tmp_path: Path) -> None:
    """Of each device that somebody holds, so that the series are as many as the node's claims."""
    registry, devices = scraped.node(tmp_path)
    await devices.refresh()
    (family,) = (
        one
        for one in registry.collect()
        if one.name == "quadrant_device_namespace_memory_held_bytes"
    )
    (sample,) = family.samples
    assert sample.labels["claim_namespace"] == "ns"
    assert sample.labels["device"] == "gpu-0"
    assert sample.labels["UUID"].startswith("GPU-")
    assert sample.value == 1000
