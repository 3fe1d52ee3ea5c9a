"""An image with a user's own packages as one more layer at its end."""
