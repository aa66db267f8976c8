"""What is left out of the packaged program, and why nothing misses it.

Names of packages are in small letters with hyphens; patterns are matched against paths inside the
folder of packages. That nothing is missed is proven by running the packaged program, see
`installers/try_linux.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatch

DISTRIBUTIONS = {
    # Wanted by torch for compiling graphs, which the engine never does.
    "sympy", "mpmath", "networkx", "fsspec", "setuptools", "triton",
    # Wanted by the hub's library for what we never call: its command line, its own downloads.
    "hf-xet", "click", "tqdm", "packaging", "colorama",
    # Wanted by cffi for reading C, while cryptography brings what it read.
    "pycparser",
    # Wanted by gguf.
    "requests", "urllib3", "charset-normalizer", "certifi",
    # Reads the file that the demo model is built from; the demo is inside as built.
    "gguf",
}  # fmt: skip
"""Packages that pip brings along and that no code of ours reaches."""


@dataclass(frozen=True)
class Cut:
    """Files that go, with the reason."""

    reason: str
    patterns: tuple[str, ...]
    kept: tuple[str, ...] = ()
    """Exceptions to the patterns."""


CUTS = (
    Cut("headers, type stubs and build files", (
        "*.pyi", "*.h", "*.hpp", "*.cuh", "*.pxd", "*.pyx", "*.a", "*.lib", "*.cmake", "*.f2py*",
        "torch/include/*", "torch/share/*", "PySide6/include/*", "PySide6/typesystems/*",
        "PySide6/glue/*", "PySide6/scripts/*", "PySide6/doc/*", "PySide6/support/*",
        "shiboken6/include/*", "numpy/_core/include/*", "*/py.typed",
    )),
    Cut("tests of other projects", (
        "torch/test/*", "torch/testing/_internal/*", "torch/lib/*test*", "torch/lib/libbackend_*",
        "torch/lib/libaoti_custom_ops*", "numpy/*/tests/*", "numpy/tests/*", "psutil/tests/*",
        "torch/bin/*test*", "numpy/f2py/*", "example.py",
    ), kept=(
        "torch/testing/_internal/__init__.py", "torch/testing/_internal/common_dtype.py",
        "torch/testing/_internal/logging_tensor.py",
    )),
    Cut("compilers and their tools", (
        "torch/bin/*", "torchgen/packaged/*", "torch/lib/nvfuser*", "functorch/*",
    ), kept=("torch/bin/torch_shm_manager*",)),
    Cut("compiled files, which are made anew", ("*.pyc",)),
    Cut("how the demo model is built; it is inside as built", (
        "resources/demo/*", "resources/traces/*",
    ), kept=("resources/demo/larder-demo/*",)),
)  # fmt: skip

QT_MODULES = ("QtCore", "QtGui", "QtNetwork", "QtSvg", "QtWidgets")
"""The parts of PySide6 that stay; those of Qt stay by what these and the plugins load."""
QT_PLUGINS = {
    "linux": (
        "platforms/libqxcb.so", "platforms/libqwayland*.so", "platforms/libqoffscreen.so",
        "platforms/libqminimal.so", "iconengines/*", "imageformats/libqsvg.so",
        "imageformats/libqico.so", "platforminputcontexts/libcompose*",
        "platforminputcontexts/libibus*", "platformthemes/libqxdgdesktopportal.so",
        "wayland-decoration-client/*", "wayland-shell-integration/libxdg-shell.so",
        "wayland-graphics-integration-client/libqt-plugin-wayland-egl.so",
        "xcbglintegrations/*",
    ),
    "windows": (
        "platforms/qwindows.dll", "platforms/qoffscreen.dll", "platforms/qminimal.dll",
        "iconengines/*", "imageformats/qsvg.dll", "imageformats/qico.dll", "styles/*",
    ),
    "macos": (
        "platforms/libqcocoa.dylib", "platforms/libqoffscreen.dylib", "iconengines/*",
        "imageformats/libqsvg.dylib", "imageformats/libqicns.dylib", "styles/*",
    ),
}  # fmt: skip
"""The plugins of Qt that stay, below its plugins folder."""
_QT_CODE = re.compile(r"^PySide6/(Qt[A-Z0-9]\w*)\.(abi3\.so|pyd)$")
_QT_PROGRAMS = re.compile(
    r"^PySide6/(assistant|balsam|balsamui|canbusutil|designer|linguist|lrelease|lupdate|"
    r"qml\w*|qsb|rcc|svgtoqml|uic|moc|qmake\w*|meshdebug|qtpy2cpp\w*|\w+\.app)(\.exe)?(/.*)?$"
)
_QT_SHARED = (
    "PySide6/Qt/qml/*", "PySide6/Qt/libexec/*", "PySide6/Qt/translations/*", "PySide6/qml/*",
    "PySide6/Qt/metatypes/*", "PySide6/translations/*", "PySide6/metatypes/*",
    "PySide6/resources/*", "PySide6/Qt/resources/*", "PySide6/opengl32sw.dll",
    "PySide6/QtAsyncio/*", "PySide6/libpyside6qml*", "PySide6/pyside6qml*", "PySide6/d3dcompiler*",
)  # fmt: skip


def is_cut(path: str, system: str) -> bool:
    """Whether a file of the folder of packages is left out on a system."""
    if system != "linux" and path.endswith("-linux-gnu.so"):
        return True  # our own, built for the machine that makes the package
    for cut in CUTS:
        if any(fnmatch(path, pattern) for pattern in cut.patterns):
            return not any(fnmatch(path, pattern) for pattern in cut.kept)
    return path.startswith("PySide6/") and _is_cut_of_qt(path, system)


def _is_cut_of_qt(path: str, system: str) -> bool:
    """Whether a file of PySide6 is left out."""
    module = _QT_CODE.match(path)
    if module:
        return module[1] not in QT_MODULES
    if _QT_PROGRAMS.match(path) or any(fnmatch(path, pattern) for pattern in _QT_SHARED):
        return True
    _before, is_plugin, plugin = path.partition("plugins/")
    return bool(is_plugin) and not any(fnmatch(plugin, one) for one in QT_PLUGINS[system])
