"""The `firmament` command: its options, its log, and how it starts and ends the service."""
