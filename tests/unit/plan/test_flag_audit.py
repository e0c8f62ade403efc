"""Which flags an engine reads: by syntax tree, not by grep."""

import pytest

from sgmatrix.plan.flag_audit import audit_flags

DECLARED = "class Args:\n    steps: int = 1\n    share: float = 0.9\n"


@pytest.fixture
def package(tmp_path):
    """An installed package that declares `steps` and `share`; returns how to add a module."""

    def add(name, text):
        file = tmp_path / "sglang" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return tmp_path / "sglang"

    add("srt/arg_groups/fields/schedule.py", DECLARED)
    return add


def verdicts(folder, *flags):
    return {flag: use.verdict for flag, use in audit_flags(folder, flags).items()}


def test_a_declared_flag_that_an_attribute_reads_is_read(package):
    folder = package("srt/scheduler.py", "def size(args):\n    return args.share * 2\n")

    use = audit_flags(folder, ["share"])["share"]

    assert (use.verdict, use.reads) == ("read", ("srt/scheduler.py:2",))


@pytest.mark.parametrize(
    "text",
    [
        "# args.steps decides how long\n",
        "TUNABLE = ['steps']\n",  # a list of names is no use
        "def f(args):\n    args.steps = 4\n",  # written, never read
        "def f(args):\n    return args.steps_per_second\n",
        "steps = 3\n",
        "def broken(:\n    args.steps\n",
    ],
)
def test_a_mention_is_not_a_read(package, text):
    assert verdicts(package("srt/other.py", text), "steps") == {"steps": "dead_flag"}


@pytest.mark.parametrize(
    "text", ["getattr(args, 'steps', 1)\n", "args.get('steps')\n", "attrgetter('steps')\n"]
)
def test_a_name_given_to_a_reader_is_a_read(package, text):
    assert verdicts(package("srt/other.py", text), "steps") == {"steps": "read"}


def test_only_what_the_server_runs_is_looked_at(package):
    assert verdicts(package("benchmark/tool.py", "args.steps\n"), "steps") == {"steps": "dead_flag"}


def test_a_flag_that_is_nowhere_is_unknown(package):
    assert verdicts(package("srt/a.py", ""), "no_such") == {"no_such": "unknown_flag"}


def test_places_are_few_and_in_a_fixed_order(package):
    folder = package("srt/b.py", "x.share\n" * 9)
    package("srt/a.py", "x.share\n")

    assert audit_flags(folder, ["share"], most=2)["share"].reads == ("srt/a.py:1", "srt/b.py:1")
