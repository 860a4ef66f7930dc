"""One attempt to deliver: its body, its signature, the request, and the outcome."""
