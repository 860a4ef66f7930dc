"""What requests to the API server share: connections, errors that say when to retry, the rate limit."""
