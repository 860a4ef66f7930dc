"""Calls as the services see them, whatever carries them."""
