"""Formats that relay, transceiver and signaling share. Pure: bytes and text in, values out."""
