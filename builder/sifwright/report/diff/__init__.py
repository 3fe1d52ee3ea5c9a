"""What differs between two images or plans: the command `diff`."""
