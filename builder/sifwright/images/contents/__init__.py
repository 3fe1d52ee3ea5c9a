"""Look into a SIF without starting it: its files, its plan, the packages in it."""
