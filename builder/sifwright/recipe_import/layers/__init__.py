"""Write what was read from a recipe as layers and an image, and put them below defs/."""
