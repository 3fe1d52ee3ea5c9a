"""Names of properties that a Python package has in an SBOM."""

# The folder of its metadata, and the sha256 of the RECORD there, which has that of each file.
PLACE, RECORD = "sifwright:place", "sifwright:record-sha256"
