"""What the rest of Kubernetes does around us, without a cluster: pods, claims, first fit. Pure."""
