"""Other schedulers beside the cluster's own: a second kube-scheduler, and Volcano.

They run on the host, as `hack.deployment` runs Quadrant, and are no part of the product.
"""
