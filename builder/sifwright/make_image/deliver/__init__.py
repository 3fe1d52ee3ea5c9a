"""Deliver: from a SIF the squashfs file, OCI image or definition that another engine takes."""
