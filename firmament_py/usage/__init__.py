"""What tasks and nodes really use, as last measured."""
