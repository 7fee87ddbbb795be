#!/usr/bin/env python3
"""Brings NVRTC, NVIDIA's run-time compiler for CUDA, into the user's data folder, from its PyPI wheel.

usage: get_nvrtc.py [--force] [--print-folder] [--oldest]

Nothing happens where an NVRTC of the wanted version is there already. NVRTC's major version must not exceed the
driver's, so a machine with a 12.x driver gets the newest 12.x; one with a newer driver, or none, the newest.
"""
import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# (wheel, version): pinned, so that every machine compiles with the same compiler.
NEWEST = ("nvidia-cuda-nvrtc", "13.5.37")
FOR_CUDA_12 = ("nvidia-cuda-nvrtc-cu12", "12.9.86")
# What is said to do too.
OLDEST = ("nvidia-cuda-nvrtc-cu12", "12.0.140")


def data_folder():
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(base) / "spmv" / "nvrtc"


def driver_major():
    """The CUDA major version that the installed driver supports, or None without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int(0)
    if driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000


def fetch(wheel, version, folder):
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
             "--only-binary=:all:", "--dest", work, f"{wheel}=={version}"],
            check=True,
        )
        (archive,) = Path(work).glob("*.whl")
        # Beside the final folder, so that the rename at the end is atomic.
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as unpacked:
            kept = Path(unpacked) / "kept"
            kept.mkdir()
            with zipfile.ZipFile(archive) as contents:
                for name in contents.namelist():
                    base = os.path.basename(name)
                    wanted = base.startswith("libnvrtc") and ".so" in base and ".alt." not in base
                    if wanted or "license" in base.lower():
                        with contents.open(name) as source, open(kept / base, "wb") as target:
                            shutil.copyfileobj(source, target)
            if not list(kept.glob("libnvrtc.so*")):
                raise SystemExit(f"{wheel} {version} holds no libnvrtc.so")
            if folder.exists():
                shutil.rmtree(folder)
            kept.rename(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="fetch again even if it is there")
    parser.add_argument("--print-folder", action="store_true", help="print the folder and do nothing else")
    parser.add_argument("--oldest", action="store_true", help="the oldest version that is supported, beside the other")
    arguments = parser.parse_args()
    major = driver_major()
    wheel, version = OLDEST if arguments.oldest else FOR_CUDA_12 if major is not None and major < 13 else NEWEST
    folder = data_folder() / version
    if arguments.print_folder:
        print(folder)
        return
    if list(folder.glob("libnvrtc.so*")) and not arguments.force:
        return
    driver = "no CUDA driver here" if major is None else f"driver supports CUDA {major}.x"
    print(f"fetching {wheel} {version} ({driver}) into {folder}", file=sys.stderr)
    try:
        fetch(wheel, version, folder)
    except subprocess.CalledProcessError:
        raise SystemExit(
            f"pip could not download {wheel} {version}. With an NVRTC of your own, set SPMV_NVRTC to its folder."
        )


if __name__ == "__main__":
    main()
