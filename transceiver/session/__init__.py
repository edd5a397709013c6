"""A Realtime session without a model: settings, conversation, turns, responses. Pure.

`session.Session` is the whole of it, `commands` what it asks of the owner of the audio.
"""
