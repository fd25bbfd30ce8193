"""Whether the plugin's discovery and NVIDIA's own tool say the same of the cards of a machine."""
