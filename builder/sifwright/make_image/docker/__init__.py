"""Run the steps of a plan with Docker Engine or podman, each in a container.

A context comes in. An image of the engine goes out, or a SIF of that image's tree (`to_sif`).
The engine keeps the results itself, so the step cache is not used. How the engine is reached is
the business of `host`.
"""
