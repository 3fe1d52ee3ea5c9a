"""Read and write the lock file: a pylock.toml with a table of our own.

A text of any origin comes in. A `Lock` with checked names and digests goes out.
Nothing is fetched or compared here; that is the business of `lock`.
"""
