"""Who may do what, and how often: keys and limits. `access.py` is what the faces ask."""
