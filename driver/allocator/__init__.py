"""Which devices claims get on one node: first fit as the scheduler does, or the best score. Pure."""
