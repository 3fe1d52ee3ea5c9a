"""Read and write the lock file: a pylock.toml with a table of our own.

A text comes in, from anybody. A `Lock` goes out, whose names and digests have been checked.
Nothing is fetched or compared here; that is the business of `lock`.
"""
