"""The node that a campaign was measured on, by its records alone."""

import os

from builders import History, campaign
from sgmatrix.core.files import read_json, write_json
from sgmatrix.dataset.nodes import newest_node


def test_the_attempt_that_was_asked_for_last_says_it(tmp_path):
    history = History(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2"]}))
    assert newest_node(history.layout) == {}
    for cell, asked_at, name in (("tp1", "2026-11-21", "new"), ("tp2", "2026-11-20", "old")):
        folder = history.attempt(cell)
        write_json(folder / "spec.json", {**read_json(folder / "spec.json"), "asked_at": asked_at})
        write_json(folder / "node.json", {"hostname": name})
    os.utime(history.layout.attempt("tp1", "1", 1) / "node.json", (0, 0))  # as of a copy

    assert newest_node(history.layout) == {"hostname": "new"}
