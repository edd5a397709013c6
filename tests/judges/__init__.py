"""Judges of Realtime events that are not ours: two published schemas, and the order of one call."""
