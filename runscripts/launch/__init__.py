"""The programs conda-python-distributed and get-master: Python 3.6, standard library only.

Modules that cost time to load (re, socket, argparse) are loaded where they are needed: every rank
of every job waits for this code.
"""
