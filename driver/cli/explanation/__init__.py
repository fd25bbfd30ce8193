"""Why these devices, or why none: the account of one pod or claim of a real cluster."""
