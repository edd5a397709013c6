"""The packet process: what the datapath hands up is decided here. `python -m relayctl.packet`."""
