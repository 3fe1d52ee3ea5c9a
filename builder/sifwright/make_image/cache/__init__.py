"""The step cache: what each step of a build made, kept under the step's id."""
