"""When a person begins and ends to speak: voice activity, turns, their sound, and our own echo."""
