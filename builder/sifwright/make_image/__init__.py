"""Make an image of a plan: tested, and published in the folder build/SITE/IMAGE.

build_image.py leads through the acts: `resolve_request`, `check_machine`, `run_steps` (or `docker`,
both with `pack_layers` for each step), `assemble_sif`, `test_image`, `publish_image`. The acts use
`forecast`, `cache`, `downloads`, `lock`, `lock_format`, `attest` and `signing`. `deliver` and
`verify` take a finished image. No folder here imports a file beside the folders.
What a layer does is decided in `plan` and written in `render`.
"""
