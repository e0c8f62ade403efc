"""The layer rule: a layer imports those to its left, never one to its right (STYLE.md, part 2)."""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "workflow/scripts/sgmatrix"
LAYERS = ("core", "plan", "node", "load", "dataset", "analysis", "present")
FILES = sorted(PACKAGE.glob("*/**/*.py"))


def imports(file: Path) -> set[str]:
    """Every dotted name that a file imports, at the top or inside a function."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def modules(name: str) -> list[Path]:
    """The files that importing a name of ours runs: its packages, then its module."""
    folder, files = PACKAGE.parent, []
    for part in name.split("."):
        if (folder / f"{part}.py").is_file():
            return [*files, folder / f"{part}.py"]
        folder /= part
        if not folder.is_dir():
            break
        files.append(folder / "__init__.py")
    return files


def all_imports(file: Path) -> dict[str, Path]:
    """Every name that a file and what it imports of ours need -> the file that asks for it."""
    needed: dict[str, Path] = {}
    todo, seen = [file, *modules(".".join(file.relative_to(PACKAGE.parent).parts[:-1]))], set()
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        for name in imports(one):
            needed.setdefault(name, one)
            if name.startswith("sgmatrix."):
                todo += modules(name)
    return needed


def test_every_module_is_in_a_known_layer():
    assert {file.relative_to(PACKAGE).parts[0] for file in FILES} <= set(LAYERS)
    assert len(FILES) > 40  # the glob finds them


@pytest.mark.parametrize("file", FILES, ids=lambda file: "/".join(file.parts[-2:]))
def test_module_imports_no_later_layer(file):
    later = LAYERS[LAYERS.index(file.relative_to(PACKAGE).parts[0]) + 1 :]
    used = {name.split(".")[1] for name in imports(file) if name.startswith("sgmatrix.")}

    assert used.isdisjoint(later), f"{file.name} reaches forward to {used & set(later)}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: "/".join(file.parts[-2:]))
def test_package_knows_no_snakemake_outside_present(file):
    used = {name.split(".")[0] for name in imports(file)}

    assert "snakemake" not in used or file.parent.name == "present"


@pytest.mark.parametrize("module", ["warden", "launch", "server", "sampler"])
def test_what_runs_beside_a_server_needs_the_standard_library_only(module):
    needed = all_imports(PACKAGE / "node" / f"{module}.py")
    # `launch` writes cell.yaml; it does so once, in the job's own environment. `sampler` asks
    # NVML, where there are GPUs.
    more = {"launch": {"yaml"}, "sampler": {"pynvml"}}.get(module, set())
    allowed = {"sgmatrix", "__future__", *sys.stdlib_module_names, *more}
    foreign = {
        name: file.name for name, file in needed.items() if name.split(".")[0] not in allowed
    }

    assert not foreign
    assert "select" in needed  # the walk reached the modules below


def test_the_walk_of_imports_sees_those_inside_functions(tmp_path):
    file = tmp_path / "one.py"
    file.write_text("import a.b\ndef f():\n    from c import d, e\n    import f as g\n")

    assert imports(file) == {"a.b", "c.d", "c.e", "f"}
