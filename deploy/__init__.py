"""How Poseidon is installed: the chart, what is generated from it, and the image."""
