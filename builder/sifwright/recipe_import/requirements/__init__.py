"""Requirements files, for an image with a user's own packages as its last layer."""
