"""Downloads of steps: fetched once, kept under their sha256, handed to steps."""
