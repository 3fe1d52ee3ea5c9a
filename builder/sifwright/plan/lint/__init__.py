"""The rules of `sifwright lint`: settings of a site or image that are known to fail."""
