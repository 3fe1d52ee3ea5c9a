"""Make an image of a plan: tested, and published in the folder build/SITE/IMAGE.

The acts, in their order: `resolve_request`, `check_machine`, `run_steps` (or `docker`),
`pack_layers`, `assemble_sif`, `test_image`, `publish_image`. What the acts use: `forecast`,
`cache`, `downloads`, `lock`, `attest`, `signing`. `deliver` and `verify` take a finished image.
The files beside the folders lead through the acts. No folder imports these files.
What a layer does is decided in `plan` and written in `render`.
"""
