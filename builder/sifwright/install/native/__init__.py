"""For PyTorch installed on the host itself: its modulefile, and environments that load it."""
