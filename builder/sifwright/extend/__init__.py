"""A user's own packages as the last layer of an image.

A requirements file or a lock file comes in: pylock.toml, uv.lock, pixi.lock, environment.yml. A
catalog with one more image and layer goes out, or each line that cannot be installed.
"""
