"""Devices as a part of the scheduler: what watches them, and what gives them to pods."""
