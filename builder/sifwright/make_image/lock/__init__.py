"""Work with locks: list the packages of an image, fetch the files of a lock, compare two locks.

An inventory of an image, or a lock, comes in. A folder with every locked file goes out, from the
cache, the network or a bundle. `lock_format` reads and writes the lock file itself. The file
make_lock.py beside this folder runs the steps for a new lock.
"""
