"""Whether an installation works, as far as the API server shows it: what `quadrant doctor` asks."""
