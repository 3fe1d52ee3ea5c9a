"""Builds for another processor than this machine's, by QEMU's user emulation.

`emulate` starts the program again as root of a user namespace. There, `binfmt` registers QEMU with
Linux, unless the machine did (binfmt_misc of the kernel's documentation). `bin/` has programs that
come first on PATH. Layers and plans do not know of it.
"""
