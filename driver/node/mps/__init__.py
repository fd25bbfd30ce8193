"""The keeper of MPS daemons: a process of its own, since daemons must outlive the plugin."""
