"""Parts of collectives.py. They run in the image, with only torch and the standard library."""
