"""Which devices claims get on a node: first fit as the scheduler does, or the best score. Pure."""
