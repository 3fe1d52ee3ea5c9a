"""What steps download: fetched once, kept under its sha256, handed to the steps that want it."""
