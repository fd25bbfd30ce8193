"""Talking to the API server: session, requests, informer, lease, events."""
