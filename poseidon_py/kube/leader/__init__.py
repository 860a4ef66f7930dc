"""Who leads, and how those who ask reach it: what the holder of a lease says there, and connections to its pod."""
