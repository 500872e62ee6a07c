"""The parts of serve_soak.py."""
