"""The image format of the Open Container Initiative: layouts, layers and their tar files."""
