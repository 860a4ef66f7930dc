"""Hosts of several types with more requests for virtual machines than fit, and linear relaxations of that problem."""
