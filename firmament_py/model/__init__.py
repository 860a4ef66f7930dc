"""Values and arrays that everything else speaks of: events, constraints, resources, life cycles."""
