"""Packages that the original imports, but that do no work in a training step: plots, tables, downloads, cloud loggers.

They are not packed. Those that it can do without cannot be imported, even if the machine has them, so that every
machine measures the same. The others are stubs, which raise an error if one is used while training is measured.
"""

import importlib.machinery
import sys
import types
from unittest.mock import MagicMock

LEFT_OUT = {"clearml", "comet_ml", "git", "neptune", "tensorboard", "thop", "wandb"}
STUBS = {"matplotlib", "pandas", "pkg_resources", "requests", "roboflow", "seaborn"}


class Stub(types.ModuleType):
    """A package whose names are mocks and whose submodules are stubs."""

    __path__ = ()
    is_allowed = True

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if not Stub.is_allowed:
            raise RuntimeError(f"training uses {self.__name__}.{name}, which is not packed")
        mock = MagicMock(name=f"{self.__name__}.{name}")
        # The validation writes a table of pandas to a file.
        mock.return_value.to_html.return_value = ""
        return mock


class Finder:
    """Finds the stubs, before any package of the machine, and hides what is left out."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        package = name.partition(".")[0]
        if package in LEFT_OUT:
            raise ModuleNotFoundError(f"{name} is not packed", name=name)
        return importlib.machinery.ModuleSpec(name, Finder, is_package=True) if package in STUBS else None

    @staticmethod
    def create_module(spec):
        return Stub(spec.name)

    @staticmethod
    def exec_module(module):
        if module.__name__ == "pkg_resources":
            from packaging.version import parse

            module.parse_version = parse


def install():
    """Hides or replaces these packages for all later imports."""
    sys.meta_path.insert(0, Finder)


def forbid():
    """From now on, the use of a stub is an error."""
    Stub.is_allowed = False
