"""The package of this folder is tested, unless it is installed for the engine already."""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("sglang_oea") is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
