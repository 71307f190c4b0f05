"""The extension module and the wheel's tag; all else stands in pyproject.toml."""
from setuptools import setup

# cffi builds against the stable ABI: one wheel for Python 3.9 and newer.
setup(cffi_modules=["native/build_native.py:builder"], options={"bdist_wheel": {"py_limited_api": "cp39"}})
