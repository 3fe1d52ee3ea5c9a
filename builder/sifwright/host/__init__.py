"""The machine that builds, and how it reaches the world.

`engines` has Apptainer, Docker Engine and podman; `network` has registries, mirrors and logins.
What is built, and in which order, is the business of `make_image`.
"""
