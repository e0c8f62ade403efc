"""Opportunistic expert activation (OEA) for SGLang, as a plug-in.

Source  arXiv 2511.02237. README.md says what it does, refuses and has been proven on.
"""

__version__ = "1.0.0"
