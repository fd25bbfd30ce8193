"""The `quadrant` program."""
