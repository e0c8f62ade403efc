"""What the planner asks of a plug-in; SGLANG_STANDIN_OEA_UNSUPPORTED has it refuse the engine."""

import json
import os

why = os.environ.get("SGLANG_STANDIN_OEA_UNSUPPORTED")
print(
    json.dumps(
        {
            "plugin_version": "0.1.0+standin",
            "plugin_sha256": "0" * 64,
            "sglang_version": "0.5.23+standin",
            "supported": why is None,
            "why": why,
        }
    )
)
