"""What is measured: each subject carries frames from `outer0` to `inner0`, its own way."""
