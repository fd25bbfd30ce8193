"""How objects of the API server become our data, and our decisions become patches. Pure."""
