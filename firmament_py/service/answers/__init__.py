"""Messages of the contract that answer questions about one task, or one round."""
