# The types of `from muster import Step`: type checkers read this file instead of __init__.py.
from muster.library import *

__version__: str
