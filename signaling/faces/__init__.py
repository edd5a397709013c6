"""Faces: what each kind of client speaks over HTTP. They translate; `signaling.calls` decides."""
