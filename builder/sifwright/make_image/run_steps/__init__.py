"""Runs the steps of a plan with Apptainer and assembles their results to a SIF."""
