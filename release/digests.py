"""Names the images of Dockerfile and Compose file by digest, which the release workflow finds out.

`images` lists those without one; `fill NAME=sha256:…` writes digests behind their names; `ours NAME:TAG@sha256:…` puts
the image of a release in place of `build: .`, so that whoever downloads the Compose file needs no checkout.
"""

import re
import sys
from pathlib import Path

FILES = ("Dockerfile", "docker-compose.yml")
NAMED = re.compile(r"^(FROM |    image: )(?P<name>[^\s@]+)(?P<rest>(?: AS \w+)?)$", re.M)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class NotADigest(ValueError):
    """What was given is no name with a digest."""


def images(texts: list[str]) -> list[str]:
    """Names of the images that have no digest yet, each once, in their order."""
    return list(dict.fromkeys(found["name"] for text in texts for found in NAMED.finditer(text)))


def filled(text: str, digests: dict[str, str]) -> str:
    """The text with a digest behind every name.

    Raises:
        NotADigest: If one is missing or malformed.
    """

    def named(found: re.Match[str]) -> str:
        digest = digests.get(found["name"], "")
        if not DIGEST.fullmatch(digest):
            raise NotADigest(f"{found['name']} needs a digest such as sha256:…, got {digest!r}")
        if found[1] == "FROM ":
            return f"{found[1]}{found['name']}@{digest}{found['rest']}"
        return f"{found[1]}{by_digest(found['name'], digest)}"

    return NAMED.sub(named, text)


def by_digest(name: str, digest: str) -> str:
    """An image by its digest alone, as the Compose specification has it; its tag stays as a comment."""
    return f"{name.partition(':')[0]}@{digest}  # {name}"


def with_ours(compose: str, image: str) -> str:
    """The Compose file with an image in place of what builds it.

    Raises:
        NotADigest: If the image is not named by a digest.
    """
    name, _, digest = image.partition("@")
    if not DIGEST.fullmatch(digest):
        raise NotADigest(f"the image of a release is named by its digest, got {image!r}")
    return compose.replace("    build: .\n", f"    image: {by_digest(name, digest)}\n").replace(" --build", "")


def main(arguments: list[str]) -> int:
    """Do as the first argument says, with the files of the folder."""
    texts = {name: Path(name).read_text() for name in FILES}
    match arguments:
        case ["images"]:
            print("\n".join(images(list(texts.values()))))
        case ["fill", *said]:
            digests = dict(one.split("=", 1) for one in said)
            for name, text in texts.items():
                Path(name).write_text(filled(text, digests))
        case ["ours", image]:
            Path("docker-compose.yml").write_text(with_ours(texts["docker-compose.yml"], image))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
