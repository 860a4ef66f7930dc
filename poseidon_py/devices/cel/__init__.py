"""The CEL expressions with which claims and classes select devices: parsed, type-checked, evaluated per device."""
