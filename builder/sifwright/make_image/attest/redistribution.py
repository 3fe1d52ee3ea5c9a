"""Components of an image with terms that restrict who may pass them on."""

from __future__ import annotations

import json
import re
from typing import Any

# Words of NVIDIA's, Intel's (mkl) and other wheels, and names of packages without any.
_LICENCES = re.compile(
    r"nvidia|proprietary|cuda|cudnn|non-free|nonfree|non-commercial"
    r"|intel simplified|end.user licen[cs]e|\beula\b",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"(?:nvidia-(?!ml-py|cutlass)|cuda-(?!python)|libcu(?:dnn|blas|fft|rand|solver|sparse|file|tensor|pti)"
    r"|libnv(?:jitlink|jpeg|vm|fatbin|infer)|libnpp|cudnn|tensorrt).*"
)


def restricted(sbom: bytes) -> list[str]:
    """Return the components of an SBOM of ours to ask about before an image is passed on.

    Each has its licence, or the terms that restrict it, in brackets.

    A note, no verdict: NVIDIA's terms allow some files of CUDA inside an application. Raises
    `ValueError` for a document that is no SBOM.
    """
    try:
        listed = json.loads(sbom)["components"]
        return [f"{item['name']} ({reason})" for item in listed if (reason := _reason(item))]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("is no SBOM of an image") from error


def _reason(component: dict[str, Any]) -> str:
    for entry in component.get("licenses", ()):
        licence = entry.get("license", {})
        text = str(entry.get("expression") or licence.get("id") or licence.get("name") or "")
        if _LICENCES.search(text):
            return text
    name = str(component["name"])
    return "terms of NVIDIA's toolkit" if _NAMES.fullmatch(name.lower()) else ""
