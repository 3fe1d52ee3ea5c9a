"""The machine that builds, and how it reaches the world.

`engines` has Apptainer, Docker Engine and podman; `network` has registries, mirrors and logins.
`make_image` decides what is built, and in which order.
"""
