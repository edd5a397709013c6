"""`make bench-signaling`: from an offer to sound, offers a second, and what nobody finishes."""
