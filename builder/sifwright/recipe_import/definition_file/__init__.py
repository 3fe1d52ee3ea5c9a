"""Definition files of Apptainer: their header and sections."""
