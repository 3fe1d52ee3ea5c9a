"""Find what a step changed, and pack it as a squashfs file with a listing.

The upper folder of an overlay, or a tree, comes in. The same changes give the same bytes.
A stack of layers is merged here, too. Nothing is known here of plans, caches and SIFs.
"""
