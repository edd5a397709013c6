"""What people and programs do in scripted conversations, and what they have to be told then.

A script speaks, sends and waits on a `Talk`; at its end it says which events the client got,
in which order. Names are those of general availability, also where the client speaks beta.
"""
