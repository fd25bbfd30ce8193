"""A real cluster as it is at one moment, for commands that look once and change nothing."""
