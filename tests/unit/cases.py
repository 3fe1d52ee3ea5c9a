"""Every mistake a user can make in `defs` or on the command line, by name."""

from tests.unit.broken import (
    BASE,
    EXTRA,
    IMAGE,
    INSTALL,
    SCRIPT,
    SITE,
    TOOL,
    VERSIONS,
    append,
    case,
    layers,
    link,
    remove,
    rename,
    replace,
    setting,
    write,
)
from tests.unit.job_cases import JOBS, SITES

COMMAND_LINE = {
    "command-missing": case(command=()),
    "command-option-unknown": case(command=("plan", "here", "--jsn")),
    "command-site-missing": case(command=("plan",)),
    "site-unknown": case(command=("plan", "hree")),
    "site-unknown-for-test": case(command=("test", "hree")),
    "site-path": case(command=("plan", "../sites/here")),
    "show-kind": case(command=("show", "sites", "here")),
    "show-unknown": case(command=("show", "layer", "tol")),
    "lint-site-unknown": case(command=("lint", "hree")),
    "lint-set-unknown": case(command=("lint", "here", "--set", "tool.cuont=3")),
    "image-unknown": case(command=("render", "here", "smal")),
    "image-path": case(command=("plan", "here", "/etc/passwd")),
    "image-not-built": case(command=("test", "here", "--output", "nowhere")),
    "set-form": setting("tool=1", "nothing", "version=1"),
    "set-layer-path": setting("../tool.count=3", "/etc/tool.count=3"),
    "set-layer-not-in-image": setting("other-tool.count=3"),
    "set-integer-long": setting("tool.count=" + "9" * 30),
    "set-boolean": setting("tool.fast=yes"),
    "set-pattern": setting("tool.version=2.x"),
    "set-enum": setting("base.suite=stabel"),
    "set-newline": setting("tool.text=a\n%post\ntouch x"),
    "set-long": setting("tool.text=" + "x" * 4097),
    "set-not-unicode": setting("tool.text=\udcff"),
    "set-several": setting("tool.count=many", "tool.cuont=3", "tol.fast=true"),
    "set-header-comment": case(
        command=("render", "here", "--set", "base.mirror=http://mirror.example/#debian")
    ),
}
YAML = {
    "yaml-anchor": case(replace(SITE, "launcher: local", "launcher: &a local")),
    "yaml-alias": case(append(SITE, "sif: *a\n")),
    "yaml-duplicate-key": case(append(SITE, "vendor: amd\n")),
    "yaml-empty": case(write(SITE, "")),
    "yaml-key-not-text": case(append(SITE, "? [a, b]\n: c\n")),
    "yaml-key-newline": case(append(SITE, '"a\\nb": c\n')),
    "yaml-list": case(write(SITE, "- vendor: cpu\n")),
    "yaml-nested": case(append(SITE, "sif: " + "[" * 30 + "]" * 30 + "\n")),
    "yaml-not-utf8": case(write(SITE, b"description: caf\xe9\n")),
    "yaml-number": case(append(SITE, "sif: 0b_\n")),
    "yaml-number-long": case(append(SITE, f"sif: {'1:' * 400}1.5\n")),
    "yaml-syntax": case(replace(SITE, "vendor: cpu", "vendor: [cpu")),
    "yaml-tab": case(replace(SITE, "  tool:", "\ttool:")),
    "yaml-tag": case(replace(SITE, "vendor: cpu", "vendor: !!python/object:os.system cpu")),
    "yaml-tag-mapping": case(append(SITE, "sif: !!map {compression: zstd}\n")),
    "yaml-too-big": case(append(SITE, f"# {'x' * (1 << 18)}\n")),
    "yaml-two-documents": case(append(SITE, "---\nvendor: cpu\n")),
}
KEYS = {
    "key-unknown-in-layer": case(append(EXTRA, "requries: [tool]\n")),
    "key-unknown-in-option": case(replace(TOOL, "    pattern:", "    patern:")),
    "key-missing": case(replace(SITE, "vendor: cpu\nscheduler: local\n", "")),
    "key-missing-in-layer": case(replace(TOOL, "summary: A tool\n", "")),
    "key-missing-in-option": case(replace(TOOL, "    description: Any text\n", "")),
    "key-option-name": case(replace(TOOL, "  text:", "  Text_1:")),
    "key-env-name": case(replace(EXTRA, "  EXTRA:", "  1-EXTRA:")),
    "hours-of-text": case(append(EXTRA, "resources: {hours: many}\n")),
    "enum-number": case(replace(SITE, "scheduler: local", "scheduler: 3")),
    "description-lines": case(replace(SITE, "A machine to test with", '"a\\n%post\\n  touch x"')),
    "description-empty": case(replace(IMAGE, "A small image", "''")),
    "description-argument": case(replace(IMAGE, "A small image", "'A {{ small }} image'")),
    "env-newline": case(replace(EXTRA, "/opt/extra}", '"/opt/extra\\n"}')),
    "env-two-actions": case(replace(EXTRA, "{set: /opt/extra}", "{set: a, default: b}")),
    "env-no-action": case(replace(EXTRA, "{set: /opt/extra}", "{}")),
    "bootstrap-option-key": case(replace(BASE, "{option: suite}", "{optin: suite}")),
    "bootstrap-number": case(replace(BASE, "Bootstrap: debootstrap", "Bootstrap: 12")),
    "header-comment": case(replace(BASE, "{option: suite}", "'a # b'"), command=("render", "here")),
    "image-without-layers": case(write(IMAGE, "description: A small image\nlayers: []\n")),
}
VALUES = {
    "version-unquoted-in-layer": case(replace(TOOL, '"1.1.0"', "2.10")),
    "version-unquoted-in-image": case(replace(IMAGE, "text: from the image", "version: 2.10")),
    "version-unquoted-in-table": case(replace(VERSIONS, '["3.12"]', "[3.10, 3.12]")),
    "version-unquoted-in-cell": case(replace(VERSIONS, '{python: "3.14"}', "{python: 3.10}")),
    "type-string-in-layer": case(replace(TOOL, 'default: ""', "default: yes")),
    "type-string-in-image": case(replace(IMAGE, "from the image", "12")),
    "type-boolean-in-layer": case(replace(TOOL, "default: false", "default: fast")),
    "type-boolean-in-image": case(replace(IMAGE, "text: from the image", "fast: 1")),
    "type-integer-in-layer": case(replace(TOOL, "default: 1", "default: 1.5")),
    "type-integer-in-image": case(replace(IMAGE, "text: from the image", "count: few")),
    "type-integer-in-site": case(replace(SITE, "count: 2", "count: true")),
    "type-integer-long": case(replace(SITE, "count: 2", "count: 0x" + "f" * 40)),
    "type-list": case(replace(SITE, "count: 2", "count: [2]")),
    "type-mapping": case(replace(IMAGE, "description: A small image", "description: {a: b}")),
    "type-nothing": case(replace(SITE, "count: 2", "count:")),
    "enum-in-option": case(replace(BASE, "default: stable", "default: stabel")),
    "pattern-in-image": case(replace(IMAGE, "text: from the image", "version: '2.x'")),
    "pattern-wrong": case(replace(TOOL, "[0-9]+\\\\.[0-9]+\\\\.[0-9]+", "[0-9")),
    "pattern-huge": case(replace(TOOL, "[0-9]+\\\\.[0-9]+\\\\.[0-9]+", "a{99999999999}")),
    "value-build-argument": case(replace(IMAGE, "from the image", "'{{ x }}'")),
}
REFERENCES = {
    "layer-unknown-in-site": case(replace(SITE, "  tool:", "  tol:")),
    "layer-path-in-image": case(replace(IMAGE, "layer: extra", "layer: ../layers/extra")),
    "option-unknown-in-image": case(replace(IMAGE, "text: from", "txt: from")),
    "option-of-layer-without": case(replace(SITE, "  tool:", "  extra:")),
    "option-unknown-in-bootstrap": case(replace(BASE, "{option: suite}", "{option: siute}")),
    "option-unknown-in-rule": case(replace(BASE, "option.suite", "option.siute")),
    "option-unknown-in-build": case(
        append(
            BASE,
            "built: [{by: make test, vendor: cpu, processor: x86_64, base: base, depth: imported,"
            " options: {siute: a}, date: '2026-11-30', what: all}]\n",
        )
    ),
    "option-unknown-in-download": case(
        append(BASE, "downloads: [{what: it, pip: 'a=={siute}'}]\n")
    ),
    "download-without-option": case(append(BASE, "downloads: [{what: it, url: dists}]\n")),
    "reference-form": case(replace(BASE, "row: option.suite", "row: suite")),
    "table-unknown": case(replace(BASE, "table: releases", "table: release")),
    "machine-unknown": case(replace(BASE, "machine: debian-mirror", "machine: mirror")),
}
FILES = {
    "file-install-missing": case(remove(INSTALL)),
    "file-layer-missing": case(remove(EXTRA)),
    "file-linked-in-files": case(link("layers/tool/files/secret", "/etc/hostname")),
    "file-linked-folder": case(link("layers/tool/patches", "/etc")),
    "file-linked-script": case(link(INSTALL, "/etc/hostname")),
    "file-linked-site": case(link("sites/other.yaml", "/etc/hostname")),
    "file-linked-layer": case(link("layers/extra", "/etc")),
    "file-linked-in-circle": case(link(SITE, "here.yaml")),
    "file-test-dangling": case(link("layers/tool/test.sh", "/nonexistent")),
    "file-is-folder": case(write("sites/there.yaml/x", "")),
    "file-too-big": case(write("layers/tool/files/big", b"\0" * ((4 << 20) + 1))),
    "file-name-newline": case(write("layers/tool/files/a\n%post\n x", "")),
    "file-name-argument": case(write("layers/tool/files/{{ x }}", "")),
    "name-of-layer": case(rename("layers/extra", "layers/Extra_1")),
    "name-of-site": case(rename(SITE, "sites/my site.yaml")),
    "name-ends-in-yml": case(write("sites/there.yml", "description: x\n")),
    "include-missing": case(append(EXTRA, "include: [runscripts]\n")),
    "include-path": case(append(EXTRA, "include: [../../etc]\n")),
    "project-missing": case(command=("--project", "nowhere", "list")),
}
SCRIPTS = {
    "script-section-indented": case(write(INSTALL, f"{SCRIPT}cat <<'X'\n  \t%files\nX\n")),
    "script-build-argument": case(write(INSTALL, f"{SCRIPT}echo '{{{{ x }}}}'\n")),
    "script-build-argument-over-lines": case(write(INSTALL, f"{SCRIPT}echo '{{{{\nx\n}}}}'\n")),
    "script-carriage-return": case(write(INSTALL, SCRIPT.replace("\n", "\r\n"))),
    "script-delimiter": case(write(INSTALL, f"{SCRIPT}SIFWRIGHT_EOF\n")),
    "script-not-strict": case(write(INSTALL, "#!/bin/bash\nset -e\n")),
    "script-no-last-newline": case(write(INSTALL, f"{SCRIPT}true")),
    "script-not-utf8": case(write(INSTALL, f"{SCRIPT}# caf".encode() + b"\xe9\n")),
    "script-nul": case(write(INSTALL, f"{SCRIPT}echo \0\n")),
    "script-test": case(write("layers/tool/test.sh", "%test\n")),
}
PINS = "layers/tool/pins.yaml"
PIN = """\
tool-source:
  git: https://example.org/tool.git
  tag: v{version}
  versions:
    "1.1.0": {commit: 0123456789012345678901234567890123456789}
"""
SITE_OPTION = """\
  vendor:
    type: string
    description: Whose GPUs
    default: {site: vendor}
    enum: [nvidia]
"""
LOOKED_UP = {
    "origin-two": case(replace(TOOL, 'default: ""', "default: {site: arch, text: x}")),
    "origin-none": case(replace(TOOL, 'default: ""', "default: {}")),
    "origin-cell-half": case(
        replace(TOOL, 'default: ""', "default: {table: tools, row: site.arch}")
    ),
    "origin-of-integer": case(replace(TOOL, "default: 1\n", "default: {site: arch}\n")),
    "origin-of-later-option": case(replace(TOOL, 'default: "1.1.0"', "default: {option: wheel}")),
    "origin-of-unknown-option": case(replace(TOOL, 'default: ""', "default: {option: wheell}")),
    "origin-of-unknown-table": case(
        replace(TOOL, 'default: ""', "default: {table: tolls, row: option.wheel, column: a}")
    ),
    "origin-not-allowed": case(replace(TOOL, "  text:\n", f"{SITE_OPTION}  text:\n")),
    "for-unknown-fact": case(append(EXTRA, "for: {vendors: [amd]}\n")),
    "for-other-vendor": case(append(EXTRA, "for: {vendor: [amd, nvidia]}\n")),
    "for-base-of-other-vendor": case(append(BASE, "for: {vendor: [amd]}\n")),
    "one-of-none": case(
        append(EXTRA, "for: {vendor: [amd]}\n"),
        append("layers/other-tool/layer.yaml", "for: {fabric: [slingshot]}\n"),
        replace(IMAGE, "layer: extra", "one-of: [extra, other-tool]"),
    ),
    "one-of-unknown": case(replace(IMAGE, "layer: extra", "one-of: [extra, exrta]")),
    "one-of-and-layer": case(replace(IMAGE, "layer: extra", "layer: extra\n    one-of: [a, b]")),
    "set-left-out": case(
        append(TOOL, "for: {vendor: [amd]}\n"),
        replace(IMAGE, "- layer: tool", "- optional: true\n    layer: tool"),
        write(EXTRA, "summary: More\n"),
        command=("plan", "here", "--set", "tool.count=3"),
    ),
    "specifier-not-met": case(
        replace(TOOL, "value: fact.python}", "value: fact.python, why: it hangs there}"),
        replace(VERSIONS, '["3.10", "3.11"]', '[">=3.12,<4"]'),
    ),
    "pins-form": case(write(PINS, PIN.replace("01234567890", "v", 1))),
    "pins-empty": case(write(PINS, "tool-source: {git: https://example.org/tool.git, tag: a}\n")),
    "pins-address": case(write(PINS, PIN.replace("https://", "https://user:secret@"))),
    "pins-option-unknown": case(write(PINS, PIN + "  option: versoin\n")),
    "pins-version-unknown": case(
        write(PINS, PIN), command=("plan", "here", "--set", "tool.version=1.0.0")
    ),
    "test-of-nobody": case(append(EXTRA, "test: tol\n")),
    "test-twice": case(append(EXTRA, "test: tool\n"), write("layers/extra/test.sh", SCRIPT)),
    "host-need-option-unknown": case(
        append(TOOL, "host-needs: [{header: a.h, package: a-dev, module: a, when: hours}]\n")
    ),
    "requirement-option-unknown": case(
        replace(EXTRA, "requires: [tool]", "requires: [{name: tool, when: hours}]")
    ),
    "host-need-of-no-kind": case(append(TOOL, "host-needs: [{package: a-dev, module: a}]\n")),
    "patches-option-unknown": case(append(TOOL, "patches: patch\n")),
    "patches-missing": case(
        append(TOOL, "patches: version\n"), write("layers/tool/patches/1.0.0/a.patch", "")
    ),
}
TOGETHER = {
    "requirement-of-nobody": case(replace(EXTRA, "requires: [tool]", "requires: [took]")),
    "requirement-later": case(layers("base", "extra", "tool")),
    "providers-two": case(layers("base", "tool", "other-tool")),
    "layer-twice": case(layers("base", "tool", "tool")),
    "base-not-first": case(layers("tool", "base")),
    "base-twice": case(layers("base", "other-base")),
    "base-missing": case(layers("tool")),
    "table-row-missing": setting("tool.version=3.0.0"),
    "python-too-new": setting("base.suite=testing"),
    "python-too-old": setting("tool.version=2.0.0"),
    "wheel-unknown": setting("tool.wheel=rocm7.1"),
    "wheel-of-other-vendor": setting("tool.wheel=cu126"),
    "wheel-not-for-version": case(
        replace(SITE, "vendor: cpu", "vendor: nvidia"),
        replace(VERSIONS, '["3.10"]', '["3.10", "3.11"]'),
        command=("plan", "here", "--set", "tool.wheel=cu126", "--set", "tool.version=1.0.0"),
    ),
    "several": case(
        replace(SITE, "vendor: cpu", "vendor: nvida"),
        append(SITE, "compresion: zstd\n"),
        write(INSTALL, f"{SCRIPT}\n%post\n%files\n"),
        replace(EXTRA, "summary: More than the tool", "summary: 2.10"),
        remove(VERSIONS),
    ),
    "several-references": case(
        replace(SITE, "image: small", "image: smal"),
        replace(SITE, "count: 2", "count: two\n    cuont: 2"),
        replace(IMAGE, "layer: extra", "layer: exra"),
    ),
}
CASES = COMMAND_LINE | YAML | KEYS | VALUES | REFERENCES | FILES | SCRIPTS | TOGETHER
CASES |= SITES | JOBS | LOOKED_UP
