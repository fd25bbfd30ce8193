"""Quadrant: a Kubernetes DRA GPU driver that scores devices at the moment of commit."""
