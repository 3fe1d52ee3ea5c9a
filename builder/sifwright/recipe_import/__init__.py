"""Other people's recipes as layers of ours.

A Dockerfile or a definition file comes in. Layers, images and install.sh go out, or each line that
cannot be carried over, with its reason.
"""
