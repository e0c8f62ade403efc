"""YAML as people mean it, and refusals that name the file, the line and the trap."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sgmatrix.core import yaml_strict
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.yaml_strict import read_yaml, yaml_text


@pytest.fixture
def read(tmp_path):
    """Read a text, or bytes, as the file c.yaml."""

    def read(content):
        file = tmp_path / "c.yaml"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_yaml(file)

    return read


@pytest.fixture
def refusal(read, tmp_path):
    """The text with which a content is refused, without the folder."""

    def refusal(content):
        with pytest.raises(SgmatrixError) as caught:
            read(content)
        assert caught.value.code == "config_rejected"
        return str(caught.value).replace(f"{tmp_path}/", "").removeprefix("config_rejected: ")

    return refusal


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("NO", "NO"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ("85", 85),
        ("-0", 0),
        ("+1", 1),
        ("0.90", 0.9),
        (".85", 0.85),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("1E-2", 0.01),
        ("2.5e+1", 25.0),
        ("~", None),
        ("null", None),
        ("", None),
        ("'8'", "8"),
        ('"true"', "true"),
        ("=", "="),
    ],
)
def test_a_word_is_what_people_take_it_for(read, word, want):
    value = read(f"key: {word}\n")["key"]

    assert value == want
    assert type(value) is type(want)


@pytest.mark.parametrize("word", ["010", "08", "-07", "0x10", "0o10", "0b11", "1_000", "00"])
def test_a_number_that_programs_read_differently_is_refused_unless_it_is_quoted(
    read, refusal, word
):
    assert refusal(f"a: 1\nkey: {word}\n") == (
        f"c.yaml, line 2: {word} is read as different numbers by different programs; write a plain "
        f'decimal number, or "{word}" in quotes where text is meant'
    )
    assert read(f'key: "{word}"\n') == {"key": word}


@pytest.mark.parametrize("word", ["tp8", "tp4pp2", "nan", "nulls", "truest", "1.2.3", "-", "e5"])
def test_any_other_word_is_text(read, word):
    assert read(f"key: '{word}'\n") == read(f'key: "{word}"\n') == {"key": word}


def test_a_key_that_stands_twice_is_named_with_both_lines(refusal):
    text = "campaign: a\naxes:\n  tp: [8]\n  other: 1\n  tp: [4]\n"

    assert refusal(text) == "c.yaml, line 5: key 'tp' stands twice, first in line 3"


@pytest.mark.parametrize("text", ["{a: 1, a: 2}", "- {x: {a: 1, a: 2}}", "1: x\n1.0: y\n"])
def test_a_key_that_stands_twice_is_found_at_any_depth(refusal, text):
    assert "stands twice, first in line 1" in refusal(text)


def test_a_merged_key_may_be_overridden_but_not_written_twice(read, refusal):
    base = "base: &base {a: 1, b: 2}\n"

    assert read(base + "here:\n  <<: *base\n  b: 3\n")["here"] == {"a": 1, "b": 3}
    assert "key 'b' stands twice, first in line 4" in refusal(
        base + "here:\n  <<: *base\n  b: 3\n  b: 3\n"
    )


@pytest.mark.parametrize(
    "value",
    [
        "!!python/object/apply:os.system ['touch PWNED']",
        "!!python/name:os.system",
        "!mine 1",
        "!!int '010'",
        "!!str 5",
        "!!set {a, b}",
        "!!binary aGk=",
    ],
)
def test_a_tag_is_refused_and_runs_nothing(refusal, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert refusal(f"a: 1\nb: {value}\n") == "c.yaml, line 2: a tag (!) has no place here"
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.yaml"]


def test_an_exclamation_mark_inside_a_word_is_no_tag(read):
    assert read("a: fast!\nb: '!quoted'\n") == {"a": "fast!", "b": "!quoted"}


def bomb(levels):
    lines = ["l0: &l0 [" + ",".join("x" * 9) + "]"]
    lines += [f"l{n}: &l{n} [" + ",".join([f"*l{n - 1}"] * 9) + "]" for n in range(1, levels)]
    return "\n".join(lines)


def test_aliases_that_unfold_to_too_much_are_refused(read, refusal):
    # ten nodes of a list, and nine times as many with each level: 9^7 is 4.8 million
    assert refusal(bomb(7)) == "c.yaml: its aliases unfold to over 200000 values"
    assert len(read(bomb(4))) == 4


def test_a_key_that_contains_itself_is_refused(refusal):
    assert "recursive" in refusal("a: &a [*a]\n")


def test_a_byte_order_mark_is_no_part_of_the_first_key(read):
    assert read(b"\xef\xbb\xbfcampaign: a\n") == {"campaign": "a"}


def test_text_of_any_language_is_kept(read):
    assert read("path: /modèles/日本 语\n") == {"path": "/modèles/日本 语"}


def test_bytes_that_are_no_utf_8_are_named(refusal):
    assert refusal(b"a: caf\xe9\n") == "c.yaml: byte 6 is not UTF-8; fix: save it as UTF-8"


@pytest.mark.parametrize(("content", "code"), [("a: 1\nb: \x01\n", "0x1"), ("a: 1\n\x00", "0x0")])
def test_a_control_character_is_named_with_its_line(refusal, content, code):
    assert refusal(content) == f"c.yaml, line 2: character {code} is not allowed"


@pytest.mark.parametrize(
    ("content", "want"),
    [
        ("", "c.yaml: holds NoneType, not a mapping of keys"),
        ("# only a comment\n", "c.yaml: holds NoneType, not a mapping of keys"),
        ("- a\n- b\n", "c.yaml: holds list, not a mapping of keys"),
        ("just words\n", "c.yaml: holds str, not a mapping of keys"),
    ],
)
def test_what_is_no_mapping_is_refused_by_what_it_is(refusal, content, want):
    assert refusal(content) == want


@pytest.mark.parametrize(
    ("content", "want"),
    [
        ("a: [1, 2\nb: 3\n", "c.yaml, line 2: "),
        ("a: 1\n---\nb: 2\n", "c.yaml, line 2: "),
        ("? [a]\n: 1\n", "c.yaml, line 1: a key is no plain word"),
        ("a: *nowhere\n", "c.yaml, line 1: found undefined alias 'nowhere'"),
        ("a: 1\nb: 1e999\n", "c.yaml, line 2: 1e999 is too large for a number"),
        ("[" * 1000, "c.yaml: nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(refusal, content, want):
    assert refusal(content).startswith(want)


def test_a_number_of_thousands_of_digits_is_refused(refusal):
    assert "digits" in refusal("a: " + "9" * 5000)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SgmatrixError) as caught:
        read_yaml(tmp_path / "night.yaml")

    want = f"config_rejected: {tmp_path}/night.yaml: No such file or directory"
    assert str(caught.value) == f"{want}; fix: name an existing file"


def test_a_file_that_is_too_large_is_refused_whatever_its_letters(refusal, monkeypatch):
    monkeypatch.setattr(yaml_strict, "_MAX_BYTES", 20)

    assert refusal("a: " + "é" * 9) == "c.yaml: larger than 20 bytes"  # 21 bytes, 12 letters


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["1e3", "12345e6", "-.5", "NO", "010", "12:30", "2026-01-01", "<<", "~", ""])
)
DATA = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
        ),
        max_leaves=6,
    ),
    max_size=4,
)


@given(data=DATA)
def test_what_is_written_is_read_back_as_it_was(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "law.yaml"
    file.write_text(yaml_text(data), encoding="utf-8")

    read = read_yaml(file)

    assert read == data
    assert repr(read) == repr(data)  # also 1 and 1.0 and True, and the order of keys


@given(data=DATA)
def test_other_readers_of_yaml_read_the_same(data):
    assert yaml.safe_load(yaml_text(data)) == data
