"""Make an image of a plan: tested, and published in the folder build/SITE/IMAGE.

The acts, in their order: `resolve_request`, `check_machine`, `run_steps` (with `pack_layers` for
each step) or `docker`, `assemble_sif`, `test_image`, `publish_image`. The first is called by `cli`;
build_image.py leads through the others. They use `forecast`, `cache`, `downloads`, `lock`,
`lock_format`, `attest` and `signing`. `deliver` and `verify` take a finished image.
`plan` decides what a layer does, and `render` writes it.
"""
