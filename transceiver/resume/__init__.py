"""What is kept of calls outside of their process, so that another one can carry them on."""
