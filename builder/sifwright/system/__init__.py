"""The operating system, without a word of containers.

Files, processes, temporary folders, user namespaces, ids, the terminal and the progress of work.
Every other room may use this one; it uses none of them.
"""
