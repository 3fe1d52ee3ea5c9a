"""SIF, the image format of Apptainer and SingularityCE: read, and written the same every time."""
