"""Writes the dashboard anew."""

from hack.dashboard import FILE, dashboard

FILE.write_text(dashboard(), encoding="utf-8")
