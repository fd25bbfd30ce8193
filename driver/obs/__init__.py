"""What an operator sees of a running process: logs and health."""
