"""The lock as a file: its entries, and the checks of one that somebody else may have written."""
