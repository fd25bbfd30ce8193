"""The HTTPS server that the API server calls."""
