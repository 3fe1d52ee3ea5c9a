"""Compare an image with what was published, and with what its recipe gives today."""
