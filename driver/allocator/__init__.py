"""Which devices a set of claims gets on one node: first fit as the scheduler does, or best score. Pure."""
