"""Values and arrays that all other packages use: events, constraints, resources, life cycles."""
