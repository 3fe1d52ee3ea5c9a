"""What a build gets: its options, its inputs, its base image and the settings of the machine."""
