"""NVIDIA cards, read and heard through NVIDIA's management library; the only user of `pynvml`."""
