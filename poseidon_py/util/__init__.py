"""General helpers: a keyed work queue, backoff, decoding, ids, logs, metrics, terminal tables."""
