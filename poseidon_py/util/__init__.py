"""What any asynchronous program needs: a keyed work queue, backoff, ids, logs, metrics."""
