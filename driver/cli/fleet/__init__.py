"""A real cluster as people look at it: cards node by node, claims, links between cards."""
