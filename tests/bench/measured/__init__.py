"""The measurements of `make bench`, one module each."""
