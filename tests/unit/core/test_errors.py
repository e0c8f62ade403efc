"""The text of a refusal is what the user reads: code, facts, fix."""

import pytest

from sgmatrix.core.errors import Refusal, SgmatrixError


@pytest.mark.parametrize(
    ("fix", "want"),
    [
        ("end it", "port_in_use: port 8000 is taken; fix: end it"),
        ("", "port_in_use: port 8000 is taken"),
    ],
)
def test_code_facts_and_fix_stand_in_one_line(fix, want):
    assert str(SgmatrixError("port_in_use", "port 8000 is taken", fix=fix)) == want


def test_a_refusal_names_every_problem_each_on_its_line():
    refusal = Refusal("config_rejected", ["a: unknown key", "b: missing"], fix="see README")

    assert (
        str(refusal)
        == "config_rejected: a: unknown key\nconfig_rejected: b: missing; fix: see README"
    )
    assert (refusal.code, refusal.facts) == ("config_rejected", "a: unknown key")
    assert isinstance(refusal, SgmatrixError)
