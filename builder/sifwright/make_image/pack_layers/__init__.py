"""Find what a step changed, and pack it as a squashfs file with a listing.

The upper folder of an overlay, or a tree, comes in. The same changes give the same bytes. Layers
that cannot be joined in a flat SIF are merged here. Nothing is known here of plans, caches and
SIFs.
"""
