"""Quotes that Snakemake 9.27 leaves out, so that a project's folder may have a space in its name.

Goes when upstream quotes them.
"""

from __future__ import annotations

import shlex
from typing import Any

from snakemake.script import PythonScript, ScriptBase
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


def quote_interpreters() -> None:
    """Quote the interpreter in the shell commands of scripts and of submitted groups.

    Source  snakemake/script/__init__.py, PythonScript.execute_script;
            snakemake_interface_executor_plugins/executors/real.py, format_job_exec.
    """
    if getattr(RemoteExecutor, "sgmatrix_quotes", False):  # a Snakefile may be read twice
        return
    plain = RemoteExecutor.get_python_executable

    def execute(self: Any, command: str, **values: Any) -> Any:
        return ScriptBase._execute_cmd(  # noqa: SLF001 - what is mended
            self, command.replace("{py_exec}", "{py_exec:q}"), **values
        )

    PythonScript._execute_cmd = execute  # noqa: SLF001
    RemoteExecutor.get_python_executable = lambda self: shlex.quote(plain(self))
    RemoteExecutor.sgmatrix_quotes = True
