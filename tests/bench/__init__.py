"""`make bench`: how fast the relay is, against a bare redirect and other relays, on one rig."""
