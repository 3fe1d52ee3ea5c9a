"""A page about an image: the command `report`."""
