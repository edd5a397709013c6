"""Transceivers and relays: what is known of them, where a call goes. `fleet.py` joins it."""
