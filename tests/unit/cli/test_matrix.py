"""Several sites, images and values in one command."""

from argparse import Namespace

import pytest

from sifwright.cli.options import matrix
from sifwright.errors import UsageError


def arguments(*texts: str, site: str = "a", image: str = "x") -> Namespace:
    return Namespace(site=site, image=image, settings=["l.other=3"], matrix=list(texts))


def test_an_image_for_each_combination() -> None:
    texts = ("l.version=1.0+cpu,2.0,2.0", "m.mode=fast")
    images = list(matrix.expand(arguments(*texts, site="a,b", image="x,y")))
    names = [f"{image.site}/{image.image}{matrix.suffix(image)}" for image in images]
    ends = ("@1.0+cpu@fast", "@2.0@fast")
    assert names == [f"{folder}{end}" for folder in ("a/x", "a/y", "b/x", "b/y") for end in ends]
    assert matrix.settings(images[0]) == ["l.other=3", "l.version=1.0+cpu", "m.mode=fast"]
    # The command of a job, which names one value, leads to the same folder.
    chosen = [word.partition("=")[2] for word in matrix.words(images[1]) if "--matrix" in word]
    (again,) = matrix.expand(arguments(*chosen))
    assert matrix.suffix(again) == "@2.0@fast"


@pytest.mark.parametrize(
    "text", ["l.version", "version=1,2", "l.v=", "l.v=1,,2", "l.v=../x", "l.v=a b", "l.v=1@2"]
)
def test_values_that_name_no_folder(text: str) -> None:
    with pytest.raises(UsageError, match=r"not of the form layer\.option"):
        list(matrix.expand(arguments(text)))


def test_an_option_that_is_given_twice() -> None:
    with pytest.raises(UsageError, match=r"--matrix l\.v=2: is given twice"):
        list(matrix.expand(arguments("l.v=1", "l.v=2")))
