"""The certificates of the server."""
