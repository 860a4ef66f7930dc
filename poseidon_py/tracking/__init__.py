"""Jobs as the scheduler observes them: states, transitions and statistics, derived from pods of any owner."""
