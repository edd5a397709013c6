"""A model behind the Realtime WebSocket protocol: OpenAI, Azure and the servers that speak it too.

The upstream server owns session and conversation. Ours passes events both ways as they are, but for
a closed list (`table.py`), and is there when the server is not (`replay.py`, `backlog.py`).
"""
