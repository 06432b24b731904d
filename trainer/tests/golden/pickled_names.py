"""Gives classes of the generators in this folder the names that YOLOv5's classes have in pickles."""
import sys
import types


def rename(cls, module):
    """Gives a class the module that it has in YOLOv5, because a pickle names it."""
    for end in range(1, module.count(".") + 2):
        name = ".".join(module.split(".")[:end])
        sys.modules.setdefault(name, types.ModuleType(name))
    setattr(sys.modules[module], cls.__name__, cls)
    cls.__module__ = module
