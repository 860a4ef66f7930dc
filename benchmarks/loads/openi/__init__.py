"""An overloaded cluster for AI jobs over weeks of virtual time, under several rules of preemption."""
