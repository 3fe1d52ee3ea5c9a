"""Other people's recipes, requirements files and lock files as layers of ours.

A Dockerfile, a definition file, a requirements.txt or a uv.lock comes in. Layers, images and
install.sh go out, or each line that cannot be carried over, with its reason.
"""
