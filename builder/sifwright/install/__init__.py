"""Images as modules of a centre: modulefile, easyconfig, and the programs of an installation.

A built or foreign image comes in. A folder that `eb` installs goes out.
`native` writes the module of a PyTorch that is installed without a container.
"""
