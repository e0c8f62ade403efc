"""The environment is read strictly: what is not understood is refused."""

import pytest

from sglang_oea.refusal import Refused
from sglang_oea.settings import Settings, read_settings

ON = {"OEA_ENABLE": "1", "OEA_K0": "4"}


@pytest.mark.parametrize("env", [{}, {"OEA_ENABLE": "0"}, {"OEA_ENABLE": "0", "OEA_K0": "4"}])
def test_off_is_off(env):
    assert read_settings(env) is None


def test_k0_alone_is_the_simplified_form():
    settings = read_settings(ON | {"PATH": "/bin"})

    assert settings == Settings(4)
    assert settings.simplified


def test_every_setting_is_read():
    env = ON | {
        "OEA_K_MAX": "6",
        "OEA_P": "0.9",
        "OEA_MAX_RANK": "16",
        "OEA_FILL": "mask",
        "OEA_CORE": "eager",
        "OEA_STATUS_DIR": "/s",
        "OEA_MASK_PADDING": "1",
    }

    settings = read_settings(env)

    assert settings == Settings(4, 6, 0.9, 16, "mask", "eager", "/s", mask_padding=True)
    assert not settings.simplified


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"OEA_K0": ""}, "OEA_ENABLE=1 without OEA_K0"),
        ({"OEA_K0": "0"}, "OEA_K0=0; fix: allowed: a whole number from 1"),
        ({"OEA_K0": "four"}, "OEA_K0=four; fix: allowed: a whole number from 1"),
        ({"OEA_P": "1.5"}, "OEA_P=1.5; fix: allowed: over 0, at most 1"),
        ({"OEA_P": "nan"}, "OEA_P=nan; fix: allowed: over 0, at most 1"),
        ({"OEA_K_MAX": "3"}, "OEA_K_MAX=3 is below OEA_K0=4"),
        ({"OEA_MAX_RANK": "3"}, "OEA_MAX_RANK=3 is below OEA_K0=4"),
        ({"OEA_FILL": "zero"}, "OEA_FILL=zero; fix: allowed: repeat, mask, distinct"),
        ({"OEA_CORE": "cuda"}, "OEA_CORE=cuda; fix: allowed: auto, eager, triton"),
        ({"OEA_ENABLE": "yes"}, "OEA_ENABLE=yes; fix: write 0 or 1"),
        ({"OEA_MASK_PADDING": "on"}, "OEA_MASK_PADDING=on; fix: write 0 or 1"),
        ({"OEA_KO": "4"}, "OEA_KO is not a setting; fix: write OEA_K0"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(given, says, capsys):
    with pytest.raises(Refused) as refusal:
        read_settings(ON | given)

    assert refusal.value.code == 1
    assert says in refusal.value.text
    assert capsys.readouterr().err == refusal.value.text + "\n"
    assert refusal.value.text.startswith("sglang-oea: refused: ")


def test_a_misspelt_switch_is_refused_although_it_would_mean_off():
    with pytest.raises(Refused, match="OEA_ENABEL is not a setting"):
        read_settings({"OEA_ENABEL": "1"})
