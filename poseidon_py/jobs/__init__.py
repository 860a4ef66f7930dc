"""Runs Volcano's Jobs where Volcano's own controller is absent: their pods, their phases, their retries."""
