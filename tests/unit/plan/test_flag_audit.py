"""Whether an engine reads a flag, from the source of a made-up package."""

import pytest

from sgmatrix.plan.flag_audit import audit_flags

SOURCES = {
    "srt/server_args.py": "class ServerArgs:\n    alive: int = 1\n    dead: int = 1\n",
    "srt/arg_groups/fields/perf.py": "in_a_group = 1\nserver_args.in_a_group\n",
    "srt/managers/scheduler.py": (
        "# dead is only mentioned here, as server_args.dead\n"
        "x = server_args.alive\n"
        "server_args.written = 2\n"
        "y = getattr(args, 'by_name', 1)\n"
        "z = settings.get('from_a_mapping')\n"
        "log('quoted')\n"
        "undead = 1\n"
    ),
    "srt/broken.py": "server_args.broken (\n",
    "test/test_x.py": "server_args.only_in_tests\n",
}


@pytest.fixture
def package(tmp_path):
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("flag", "verdict", "reads"),
    [
        ("alive", "read", ("srt/managers/scheduler.py:2",)),
        ("by_name", "read", ("srt/managers/scheduler.py:4",)),
        ("from_a_mapping", "read", ("srt/managers/scheduler.py:5",)),
        ("dead", "dead_flag", ()),
        ("in_a_group", "dead_flag", ()),
        ("written", "unknown_flag", ()),
        ("quoted", "unknown_flag", ()),
        ("broken", "unknown_flag", ()),
        ("only_in_tests", "unknown_flag", ()),
        ("never_heard_of", "unknown_flag", ()),
    ],
)
def test_a_flag_is_read_only_where_code_loads_it(package, flag, verdict, reads):
    use = audit_flags(package, [flag, "alive"])[flag]

    assert (use.flag, use.verdict, use.reads) == (flag, verdict, reads)


def test_a_few_places_are_enough(package):
    (package / "srt/many.py").write_text("server_args.alive\n" * 9)

    assert audit_flags(package, ["alive"], most=2)["alive"].reads == (
        "srt/managers/scheduler.py:2",
        "srt/many.py:1",
    )
    assert len(audit_flags(package, ["alive"])["alive"].reads) == 3
