"""A made-up load client: a shell script that is called as the real one is."""

import json

import pytest


class MadeUpClient:
    """Notes its arguments, does what it is told, and writes a prepared result line.

    The line is that of the number of requests asked; `line-N-K.jsonl` is only for call K.
    """

    def __init__(self, folder):
        self.folder = folder
        self.script = folder / "client.sh"
        self.does("")

    def does(self, what):
        """Run this shell code before the line is written."""
        self.script.write_text(
            "#!/bin/sh\n"
            'for word; do case "$word" in\n'
            '  --output-file=*) out="${word#*=}";;\n'
            '  --num-prompts=*) n="${word#*=}";;\n'
            "esac; done\n"
            f'cd "{self.folder}"; echo "$*" >> calls; k=$(wc -l < calls)\n'
            f"{what}\n"
            'test -e "line-$n-$k.jsonl" && cat "line-$n-$k.jsonl" > "$out" && exit\n'
            'test -e "line-$n.jsonl" && cat "line-$n.jsonl" > "$out"\n'
            "exit 0\n"
        )
        self.script.chmod(0o755)

    def answers(self, line, *, requests=None, call=None):
        """Prepare the line for that many requests; a text is written as it is."""
        if requests is None:
            requests = len(line["errors"])
        name = f"line-{requests}.jsonl" if call is None else f"line-{requests}-{call}.jsonl"
        text = line if isinstance(line, str) else json.dumps(line) + "\n"
        (self.folder / name).write_text(text)

    def calls(self):
        """The arguments of each call, as a mapping for those that have a value."""
        calls = [line.split() for line in (self.folder / "calls").read_text().splitlines()]
        return [dict(w[2:].split("=", 1) for w in words if "=" in w) for words in calls]

    def settings(self):
        return {
            "id": "sglang-python 9",
            "kind": "python",
            "python": str(self.script),
            "env": {},
            "extension": None,
            "vocab_size": 1024,
        }


@pytest.fixture
def client(tmp_path):
    folder = tmp_path / "client"
    folder.mkdir()
    return MadeUpClient(folder)
