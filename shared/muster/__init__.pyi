# The types of `from muster import Step`: type checkers read this file instead of __init__.py.
from muster.library import *
from muster.library import __all__ as __all__

__version__: str
