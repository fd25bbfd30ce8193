"""Manifests in the words of HAMi or of a device plugin, rewritten with claims."""
