"""The closed list of reason classes and their two kinds."""

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.reasons import REASONS, is_environment, reason

# DESIGN.md, section 7, word for word.
DESIGN = """config_rejected, gpu_busy, port_in_use, leftover_process, engine_missing, start_timeout,
start_stalled, oom_weights, oom_kv_init, oom_runtime, kernel_unsupported, nccl_error, server_crash,
wrong_server, flag_mismatch, plugin_inactive, client_setup, client_crash, client_timeout,
drain_failed, interrupted"""
# DESIGN.md, section 3, principle 1.
ENVIRONMENT = """gpu_busy, port_in_use, leftover_process, engine_missing, client_setup,
drain_failed, interrupted"""


def words(text):
    return set(text.replace("\n", " ").replace(" ", "").split(","))


def test_the_list_is_the_one_of_the_design():
    assert set(REASONS) == words(DESIGN)
    assert len(REASONS) == 21


def test_the_kinds_are_those_of_the_design():
    assert {name for name in REASONS if is_environment(name)} == words(ENVIRONMENT)
    assert {r.kind for r in REASONS.values()} == {"subject", "environment"}


@pytest.mark.parametrize("name", sorted(REASONS))
def test_each_carries_its_name_and_one_line_of_help(name):
    one = reason(name)

    assert one.name == name
    assert one.help.strip() == one.help != ""
    assert "\n" not in one.help


@pytest.mark.parametrize("name", ["oom", "OOM_WEIGHTS", "", "died"])
def test_a_name_outside_the_list_is_refused_and_named(name):
    with pytest.raises(SgmatrixError, match=f"{name!r} is not one of") as caught:
        is_environment(name)

    assert caught.value.code == "unknown_reason"
