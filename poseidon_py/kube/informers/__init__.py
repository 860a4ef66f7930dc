"""Objects of resources that a server may or may not serve: discovered, listed and watched."""
