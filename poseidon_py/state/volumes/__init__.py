"""What is known of storage, and what the claims of a pod mean for where it can go."""
