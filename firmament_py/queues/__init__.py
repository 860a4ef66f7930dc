"""The arithmetic of queues: quota, shares, order of admission, permissions to preempt. Pure: arrays in, arrays out."""
