"""Tools for people who work on Quadrant; nothing here is part of the installed package."""
