"""Node objects and their kubelets: admission, the life of a pod, simulated usage."""
