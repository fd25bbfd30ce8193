"""The controller's read-only page: the cluster's cards and claims, live, for a browser."""
