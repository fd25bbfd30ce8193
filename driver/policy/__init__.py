"""How good a choice of devices or of a node is. Pure; it knows nothing of claims."""
