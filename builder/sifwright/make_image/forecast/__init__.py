"""The forecast of a build: which steps will run and why, and the disk space that they need."""
