"""Which residents of nodes leave so that more important tasks fit, for all together. Independent of scheduling."""
