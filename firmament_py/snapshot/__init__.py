"""The cluster at one point in time as dense arrays, with inter-task constraints and preferences."""
