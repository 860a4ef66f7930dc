"""Devices of nodes: the drivers that publish them, what is published, and whether claims use them as they may."""
