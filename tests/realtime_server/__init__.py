"""A Realtime server of ours to test against: the WebSocket protocol in its published schemas.

It hears turns by their energy and answers with a tone or recorded speech, at any pace, and it fails
on demand. `server.RealtimeServer` in a test, `python -m tests.realtime_server` as a program.
"""
