"""`make bench-media`: calls per core, set-ups and memory, beside stock aiortc and Pion."""
