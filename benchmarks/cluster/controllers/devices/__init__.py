"""The controllers of claims for devices, and of taints on devices."""
