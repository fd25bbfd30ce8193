"""The two-by-two of policies, simulated and on a real cluster."""
