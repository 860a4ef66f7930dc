"""The `firmament` command: its options, its log, and start and stop of the service."""
