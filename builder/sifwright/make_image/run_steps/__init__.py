"""Run the steps of a plan with Apptainer, each on the results of the earlier ones.

`step_engine` is the interface of all engines, the one in `docker` included. `step_keys` computes
the keys of results. `step_life` takes a result from the cache, or has `run_in_apptainer` make it.
`sif_engine` hands a whole definition file to an engine that cannot run single steps.
`pack_layers` finds and packs the changes. SIFs are written in `assemble_sif`.
"""
