"""Other people's recipes and requirements files as layers of ours.

A Dockerfile, a definition file or a requirements.txt comes in. Layers, images and install.sh
go out, or each line that cannot be carried over, with its reason.
"""
