"""PyTorch on the host itself: installations from the layers, modulefiles, and environments.

`install` runs a plan's steps below a folder of its own for each version. `rerun_tests` tests the
version in use, `uninstall` removes all. `render_native` writes modulefiles, also of a prefix that
another user or program has filled.
"""
