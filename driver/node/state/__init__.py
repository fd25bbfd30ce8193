"""What the plugin remembers of the claims it has prepared: durable, and rebuilt when lost."""
