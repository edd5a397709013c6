"""Signaling: HTTP in front of the transceivers. Stateless; a call is found by its id alone."""
