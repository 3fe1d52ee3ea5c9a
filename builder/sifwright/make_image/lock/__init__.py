"""Work with locks: find what an image has, look it up, fetch it, bundle it, compare it.

An inventory of an image, or a lock, comes in. A folder with every locked file goes out, from the
cache, the network or a bundle. The lock file itself is read and written in `lock_format`.
No step is run here: make_lock.py beside this folder does so for a new lock.
"""
