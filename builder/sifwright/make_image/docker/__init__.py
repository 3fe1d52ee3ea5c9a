"""Build a plan with Docker Engine or podman: each step in a container, its result an image."""
