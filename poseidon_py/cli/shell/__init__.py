"""The commands as shells and kubectl see them: completion, and the plug-in `kubectl poseidon`."""
