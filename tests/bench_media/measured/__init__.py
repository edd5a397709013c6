"""The measurements of `make bench-media`, one module each."""
