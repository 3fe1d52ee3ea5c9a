"""Lists of binds and what Apptainer 1.4.5 reads in them: each bind, and its target."""

from __future__ import annotations

__all__ = ["CASES"]

CASES: dict[str, tuple[str, dict[str, str]]] = {
    "one": ("/a", {"/a": "/a"}),
    "several": ("/a,/b:/c,/d:/e:ro", {"/a": "/a", "/b:/c": "/c", "/d:/e:ro": "/e"}),
    "options": (
        "/q1.sqsh:/a:ro,image-src=/,/q2.sqsh:/b:ro,image-src=/",
        {"/q1.sqsh:/a:ro,image-src=/": "/a", "/q2.sqsh:/b:ro,image-src=/": "/b"},
    ),
    "ids": (
        "/q:/a:id=1,rw,/q:/b:id=2,ro,/c",
        {"/q:/a:id=1,rw": "/a", "/q:/b:id=2,ro": "/b", "/c": "/c"},
    ),
    "option-as-source": ("ro:/a,/b,rw:/c", {"ro:/a": "/a", "/b": "/b", "rw:/c": "/c"}),
    "colons": (
        r"/proj/x\:1:/data,/proj/y\:1:/data2",
        {r"/proj/x\:1:/data": "/data", r"/proj/y\:1:/data2": "/data2"},
    ),
    "colons-alone": (r"/x\:1,/x\:2:/b", {r"/x\:1": r"/x:1", r"/x\:2:/b": "/b"}),
    "commas": (r"x\,b:/data,x\,c:/more", {r"x\,b:/data": "/data", r"x\,c:/more": "/more"}),
    "comma-and-blank": (
        r"/Smith\, Jo:/a:ro,image-src=/,/b",
        {r"/Smith\, Jo:/a:ro,image-src=/": "/a", "/b": "/b"},
    ),
    "blanks": (" /a:/b:ro , image-src=/ , /c,", {"/a:/b:ro,image-src=/": "/b", "/c": "/c"}),
    "empty": (",/a:/b:ro,,image-src=,,/c,", {"/a:/b:ro,image-src=": "/b", "/c": "/c"}),
}
