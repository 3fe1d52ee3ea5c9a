"""The programs conda-python-distributed and get-master: Python 3.6, standard library only.

Every rank of every job waits for this code. So modules that cost time to load (re, socket,
argparse) are imported inside functions.
"""
