"""What collectives.py is made of. Runs in the image: nothing but torch and the standard library."""
