"""YAML as people mean it: no duplicate keys, no tags, no yes/no words, no silent text numbers.

YAML 1.1 reads `NO` as false, `010` as 8 and `12:30` as 750, and `1e3` as text. This loader
reads numbers as JSON and YAML 1.2 do, takes only true and false as booleans, and reads dates
as text.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import yaml

from sgmatrix.core.errors import SgmatrixError

_MAX_BYTES = 4 * 1024 * 1024
_MAX_NODES = 200_000


class _Loader(yaml.SafeLoader):
    """A safe loader with the implicit types of YAML 1.2 and unique keys."""

    def fetch_tag(self) -> None:
        raise yaml.scanner.ScannerError(None, None, "a tag (!) has no place here", self.get_mark())


_Loader.yaml_implicit_resolvers = {}  # those of YAML 1.1 are not wanted
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    (
        "float",
        r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$",
        "-+.0123456789",
    ),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    # read as other numbers by other programs: octal or not, base 16, grouped digits
    (
        "ambiguous",
        r"^[-+]?(?:0[0-9_]+|[0-9]+(?:_[0-9]+)+|0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+)$",
        "-+0123456789",
    ),
    ("merge", r"^(?:<<)$", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    number = float(loader.construct_scalar(node))
    if math.isinf(number):
        raise yaml.constructor.ConstructorError(
            None, None, f"{node.value} is too large for a number", node.start_mark
        )
    return number


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: dict[Any, yaml.Mark] = {}
    for key_node, _ in node.value:  # as written: a key may well override a merged one
        merge = key_node.tag == "tag:yaml.org,2002:merge"
        key = key_node.value if merge else loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | bool) and key is not None:
            raise yaml.constructor.ConstructorError(
                None, None, "a key is no plain word", key_node.start_mark
            )
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"key {key!r} stands twice, first in line {seen[key].line + 1}",
                key_node.start_mark,
            )
        seen[key] = key_node.start_mark
    loader.flatten_mapping(node)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


def _ambiguous(_: _Loader, node: yaml.ScalarNode) -> None:
    raise yaml.constructor.ConstructorError(
        None,
        None,
        f"{node.value} is read as different numbers by different programs; write a plain decimal "
        f'number, or "{node.value}" in quotes where text is meant',
        node.start_mark,
    )


_Loader.add_constructor("tag:yaml.org,2002:ambiguous", _ambiguous)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _count(node: yaml.Node) -> int:
    """Count the nodes that an unfolded document would have; aliases count each time."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = 1  # an alias of an ancestor counts one
            inner: list[yaml.Node] = []
            if isinstance(node, yaml.MappingNode):
                inner = [part for pair in node.value for part in pair]
            elif isinstance(node, yaml.SequenceNode):
                inner = list(node.value)
            sizes[id(node)] = 1 + sum(size(part) for part in inner)
        return sizes[id(node)]

    return size(node)


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping that a YAML file holds.

    Raises:
        SgmatrixError: `config_rejected` naming the file and the line, when the file is absent,
            too large, no YAML, has a duplicate key or a tag, or is not a mapping.
    """
    try:
        raw = path.read_bytes()
        if len(raw) > _MAX_BYTES:
            raise SgmatrixError("config_rejected", f"{path}: larger than {_MAX_BYTES} bytes")
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise SgmatrixError(
            "config_rejected", f"{path}: {error.strerror}", fix="name an existing file"
        ) from None
    except UnicodeDecodeError as error:
        raise SgmatrixError(
            "config_rejected", f"{path}: byte {error.start} is not UTF-8", fix="save it as UTF-8"
        ) from None
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None and _count(node) > _MAX_NODES:
            raise SgmatrixError(
                "config_rejected", f"{path}: its aliases unfold to over {_MAX_NODES} values"
            )
        data = None if node is None else loader.construct_document(node)
    except yaml.reader.ReaderError as error:
        line = f", line {text.count(chr(10), 0, error.position) + 1}"
        problem = f"character {error.character:#x} is not allowed"
        raise SgmatrixError("config_rejected", f"{path}{line}: {problem}") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a number of thousands of digits
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise SgmatrixError("config_rejected", f"{path}{line}: {problem}") from None
    except RecursionError:
        raise SgmatrixError("config_rejected", f"{path}: nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()
    if not isinstance(data, dict):
        raise SgmatrixError(
            "config_rejected", f"{path}: holds {type(data).__name__}, not a mapping of keys"
        )
    return data


class _Dumper(yaml.SafeDumper):
    """Quotes what this loader, or one of YAML 1.1, would not read as text, such as `1e3`."""


for _first, _rules in _Loader.yaml_implicit_resolvers.items():
    _Dumper.yaml_implicit_resolvers = {
        **_Dumper.yaml_implicit_resolvers,
        _first: [*_Dumper.yaml_implicit_resolvers.get(_first, []), *_rules],
    }


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # PyYAML writes these line breaks of Unicode plainly, and reads them back as a space.
    style = '"' if re.search("[\x85\u2028\u2029]", text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(data: dict[str, Any]) -> str:
    """Return a mapping as YAML that `read_yaml` reads back as it was."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text
