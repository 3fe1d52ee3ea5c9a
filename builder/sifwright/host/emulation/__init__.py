"""Builds for another processor than this machine's, by QEMU's user emulation.

`emulate` starts the program again as root of a user namespace. `binfmt` tells Linux there, or finds
out that the machine does so already, which programs QEMU runs (binfmt_misc of the kernel's
documentation). `bin/` has programs that come first on PATH. Layers and plans do not know of it.
"""
