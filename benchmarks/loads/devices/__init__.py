"""Nodes with devices and pods that claim them: the objects, what may be given to whom, and the bridge's path alone."""
