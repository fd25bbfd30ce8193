"""Our admission, placement and commit on real manifests, without a cluster."""
