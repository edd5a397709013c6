"""Transceivers and relays: which there are, how they are, where a call goes. `fleet.py` joins them."""
