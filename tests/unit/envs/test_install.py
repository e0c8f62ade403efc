"""envs/install.py: when it builds, what it refuses, what it says. No network, no pip."""

import contextlib
import json
import sys

import pytest

import install
import setup_checks
import setup_pip
import setup_torch
from setup_checks import Machine, SetupError, refusals

GOOD = {
    "python": (3, 11),
    "python_path": "/usr/bin/python3",
    "python_has_venv": True,
    "has_lscpu": True,
    "system": "Linux",
    "processor": "x86_64",
    "glibc": (2, 36),
    "writable": True,
    "free_bytes": 80 * 10**9,
}


def refused(*, engine, need_gb=5, **facts):
    return refusals(Machine(**(GOOD | facts)), engine=engine, need_gb=need_gb)


class TestRefusals:
    @pytest.mark.parametrize("engine", [True, False])
    def test_nothing_is_refused_on_a_good_machine(self, engine):
        assert refused(engine=engine) == []

    @pytest.mark.parametrize(
        ("engine", "facts", "words"),
        [
            (True, {"python": (3, 12)}, ["Python 3.12", "Python 3.11 exactly", "PYTHON="]),
            (False, {"python": (3, 9)}, ["Python 3.9", "3.11 or newer", "PYTHON="]),
            (True, {"glibc": (2, 31)}, ["glibc 2.31", ">= 2.34", "Debian 12"]),
            (True, {"glibc": None}, ["not glibc", ">= 2.34"]),
            (True, {"system": "Darwin", "processor": "arm64"}, ["Darwin arm64", "Linux x86_64"]),
            (False, {"python_has_venv": False}, ["ensurepip", "apt install python3-venv"]),
            (True, {"has_lscpu": False}, ["lscpu", "apt install util-linux"]),
            (False, {"writable": False}, ["not writable", "Copy it"]),
            (True, {"free_bytes": 4_900_000_000}, ["4.9 GB free", "needs 5 GB"]),
        ],
    )
    def test_each_refusal_is_one_line_with_the_value_and_the_mend(self, engine, facts, words):
        (line,) = refused(engine=engine, **facts)

        assert "\n" not in line
        for word in words:
            assert word in line

    def test_the_workflow_runs_where_the_engine_does_not(self):
        other = {"python": (3, 13), "system": "Darwin", "processor": "arm64", "glibc": None}

        assert refused(engine=False, **other) == []
        assert len(refused(engine=True, **other)) == 2

    def test_all_that_is_wrong_is_said_at_once(self):
        assert len(refused(engine=False, python=(3, 8), writable=False, free_bytes=0)) == 3

    def test_this_machine_is_looked_at_for_real(self, tmp_path):
        machine = setup_checks.look(tmp_path, sys.executable)

        assert machine.python == sys.version_info[:2]
        assert machine.writable
        assert machine.free_bytes > 0

    def test_an_interpreter_that_does_not_run_has_no_version(self, tmp_path):
        assert setup_checks.python_version(tmp_path / "python") is None
        assert setup_checks.python_version(sys.executable) == sys.version_info[:2]


def item(name, version, url, *, requires=()):
    return {
        "metadata": {"name": name, "version": version, "requires_dist": list(requires)},
        "download_info": {"url": url},
    }


class TestTorch:
    # Requires-Dist of the two builds of 2.13.0, cut down.
    BOTH = ("filelock", "typing-extensions>=4.10.0", "sympy>=1.13.3", 'pyyaml; extra == "pyyaml"')
    CUDA = (
        *BOTH,
        'cuda-toolkit[cublas,cudart]==13.0.3; platform_system == "Linux"',
        'nvidia-nccl-cu13==2.29.7; platform_system == "Linux"',
        'triton==3.7.1; platform_system == "Linux" and python_version < "3.15"',
    )

    def test_a_cpu_build_is_known_by_what_it_does_not_ask_for(self):
        torch = item("torch", "2.13.0+cpu", "file:///wheels/torch.whl", requires=self.BOTH)

        build = setup_torch.read_report({"install": [torch]})

        assert build == setup_torch.TorchBuild("2.13.0+cpu", False, ("file:///wheels/torch.whl",))

    def test_a_cuda_build_is_known_though_its_version_is_plain(self):
        torch = item("torch", "2.13.0", "https://index/torch.whl", requires=self.CUDA)

        assert setup_torch.read_report({"install": [torch]}).cuda

    def test_size_of_a_cuda_build_is_torch_and_its_cuda_packages(self, tmp_path):
        sizes = {"torch": 526_574_961, "nvidia_nccl_cu13": 206_000_000, "triton": 197_700_000}
        for name, size in sizes.items():
            with (tmp_path / f"{name} 1.whl").open("wb") as file:
                file.truncate(size)  # sparse
        (tmp_path / "sympy 1.whl").write_bytes(b"not counted")
        report = [
            item(name, "1", (tmp_path / f"{name} 1.whl").as_uri(), requires=self.CUDA)
            for name in (*sizes, "sympy")
        ]

        build = setup_torch.read_report({"install": report})
        size = setup_torch.download_bytes(build)

        assert size == sum(sizes.values())
        assert "930 MB, 3 packages" in setup_torch.notice(build, size)
        assert "TORCH_INDEX=" in setup_torch.notice(build, size)

    def test_a_size_that_cannot_be_learned_is_not_made_up(self, tmp_path):
        urls = ((tmp_path / "gone.whl").as_uri(),)
        build = setup_torch.TorchBuild("2.13.0", True, urls)

        assert setup_torch.download_bytes(build) is None
        assert "unknown size" in setup_torch.notice(build, None)

    def test_torch_index_is_passed_on_only_when_named(self, monkeypatch):
        monkeypatch.delenv("TORCH_INDEX", raising=False)
        assert setup_torch.index_arguments() == []
        monkeypatch.setenv("TORCH_INDEX", " https://index/cpu ")
        assert setup_torch.index_arguments() == ["--index-url", "https://index/cpu"]


@pytest.fixture
def made(tmp_path):
    """An environment that looks whole, and the locks that it was made from."""
    folder = tmp_path / "env"
    link_python(folder)
    wanted = {"workflow/requirements.lock": "11aa"}
    install.write_stamp(folder, wanted)
    return folder, wanted


class TestStamp:
    def test_fits_what_it_was_made_from(self, made):
        assert install.fits(*made)

    def test_a_changed_or_another_lock_does_not_fit(self, made):
        folder, wanted = made

        assert not install.fits(folder, {"workflow/requirements.lock": "22bb"})
        assert not install.fits(folder, wanted | {"workflow/dev.lock": "33cc"})

    def test_tools_that_were_added_do_not_hurt_the_workflow(self, made):
        folder, wanted = made
        install.write_stamp(folder, wanted | {"workflow/dev.lock": "33cc"})

        assert install.fits(folder, wanted)

    def test_a_moved_environment_does_not_fit(self, made):
        folder, wanted = made
        moved = folder.rename(folder.with_name("moved"))

        assert not install.fits(moved, wanted)

    def test_an_environment_whose_python_is_gone_does_not_fit(self, made):
        folder, wanted = made
        (folder / "bin" / "python").unlink()
        (folder / "bin" / "python").symlink_to("/nowhere/python")

        assert not install.fits(folder, wanted)

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"locks": 1}'])
    def test_a_broken_stamp_is_no_stamp(self, made, text):
        folder, wanted = made
        (folder / install.STAMP).write_text(text)

        assert not install.fits(folder, wanted)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The workflow's environment, moved to a folder of its own; its venv is only a link."""
    folder = tmp_path / "Über prüf" / ".venv"
    lock = install.ENVIRONMENTS["workflow"].locks
    env = install.Environment("workflow", folder, lock, usual_s=1, need_gb=0)
    monkeypatch.setitem(install.ENVIRONMENTS, "workflow", env)
    monkeypatch.setattr(install, "alone", lambda _progress: contextlib.nullcontext())
    monkeypatch.setattr(install, "make_venv", link_python)
    return folder


def link_python(folder, _python=None):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)


class TestSetUp:
    def test_an_environment_that_fits_is_left_alone_without_a_word(
        self, project, monkeypatch, capfd
    ):
        link_python(project)
        lock = install.WORKFLOW_LOCK
        install.write_stamp(project, {"workflow/requirements.lock": install.sha256(lock)})
        monkeypatch.setattr(install, "build", None)

        assert install.main(["workflow"]) == 0
        assert capfd.readouterr() == ("", "")

    @pytest.mark.parametrize(
        ("error", "code", "words"),
        [
            (KeyboardInterrupt(), 130, "interrupted"),
            (SetupError("pip failed: the disk is full\n  last line"), 1, "workflow: pip failed"),
        ],
    )
    def test_one_that_does_not_end_well_leaves_no_stamp(
        self, project, monkeypatch, capfd, error, code, words
    ):
        def fail(*_args, **_kwargs):
            raise error

        monkeypatch.setattr(setup_pip.Pip, "install", fail)

        assert install.main(["workflow"]) == code
        assert words in capfd.readouterr().err
        assert not (project / install.STAMP).exists()
        assert (project / install.MARK).exists()

    def test_what_was_left_half_built_is_removed(self, project, monkeypatch):
        project.mkdir(parents=True)
        (project / install.MARK).touch()
        (project / "half").touch()
        monkeypatch.setattr(setup_pip.Pip, "install", lambda *_args, **_kwargs: None)
        monkeypatch.setattr(setup_pip.Pip, "missing", lambda *_args: [])

        assert install.main(["workflow"]) == 0
        assert not (project / "half").exists()
        assert (project / install.STAMP).exists()

    def test_a_folder_that_someone_else_made_is_not_touched(self, project, capfd):
        project.mkdir(parents=True)
        (project / "notes.txt").write_text("mine")

        assert install.main(["workflow"]) == 1
        assert "was not made by this set-up" in capfd.readouterr().err
        assert (project / "notes.txt").read_text() == "mine"

    def test_packages_that_pip_put_elsewhere_are_missed(self, project, monkeypatch, capfd):
        monkeypatch.setattr(setup_pip.Pip, "install", lambda *_args, **_kwargs: None)

        assert install.main(["workflow"]) == 1
        assert "pip left out pip==" in capfd.readouterr().err

    def test_refusals_are_one_line_each_and_exit_code_1(self, project, monkeypatch, capfd):
        bad = Machine(**(GOOD | {"writable": False, "free_bytes": 10**9}))
        monkeypatch.setattr(install, "look", lambda *_args: bad)
        env = install.ENVIRONMENTS["workflow"]
        monkeypatch.setitem(
            install.ENVIRONMENTS,
            "workflow",
            install.Environment(env.name, env.folder, env.locks, usual_s=1, need_gb=2),
        )

        assert install.main(["workflow"]) == 1
        assert [line[:30] for line in capfd.readouterr().err.splitlines()] == [
            "workflow: the project's folder",
            "workflow: 1.0 GB free on the p",
        ]
        assert not project.exists()


class TestPip:
    def test_the_caller_says_where_packages_come_from_not_where_they_go(self):
        kept = {"PATH": "/bin", "PIP_INDEX_URL": "https://index", "PIP_CERT": "/ca.pem"}
        dropped = {
            "PYTHONPATH": "/elsewhere",
            "PYTHONHOME": "/usr",
            "PIP_TARGET": "/tmp",
            "PIP_USER": "1",
            "PIP_NO_DEPS": "1",
            "PIP_DRY_RUN": "1",
        }

        cleaned = setup_pip.clean_environment(kept | dropped)

        assert cleaned == kept | {"PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1"}

    @pytest.mark.parametrize(
        ("said", "count", "want"),
        [
            ("", 3, "asking the package index"),
            (
                """
Collecting six==1.17.0 (from -r a.lock (line 2))
  Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)
Collecting torch==2.13.0
  Downloading torch-2.13.0-cp311.whl (526.6 MB)
""",
                3,
                "fetching 2 of 3: torch-2.13.0-cp311.whl (526.6 MB)",
            ),
            ("Collecting torch==2.13.0\n", None, "fetching: torch==2.13.0"),
            (
                "Collecting six\nInstalling collected packages: six, typing_extensions, Jinja2\n",
                3,
                "installed 2 of 3 packages",
            ),
            ("Installing collected packages: torch\n", None, "installing torch"),
        ],
    )
    def test_its_step_is_read_from_what_it_says(self, said, count, want):
        assert setup_pip.step(said, {"six", "jinja2", "pip"}, count) == want

    def test_a_failure_shows_the_end_of_the_log_and_the_mend(self, tmp_path):
        said = "".join(f"line {n}\n" for n in range(40)) + "OSError: No space left on device\n"

        text = setup_pip.failure(said, tmp_path / "install.log")

        assert text.splitlines()[0] == "pip failed: the disk is full; free some space"
        assert "line 28" not in text
        assert "  line 39\n  OSError: No space left on device\n" in text
        assert str(tmp_path / "install.log") in text

    def test_what_is_installed_is_compared_by_name_and_version(self, tmp_path):
        packages = tmp_path / "lib" / "python3.11" / "site-packages"
        for name in ("torch-2.13.0+cpu", "Jinja2-3.1.6", "typing_extensions-4.15.0"):
            (packages / f"{name}.dist-info").mkdir(parents=True)
        pip = setup_pip.Pip(tmp_path, setup_pip.Progress("test"))
        pins = {"torch": "2.13.0", "jinja2": "3.1.6", "typing-extensions": "4.16.0", "six": "1"}

        assert pip.missing(pins) == ["typing-extensions==4.16.0", "six==1"]

    def test_a_real_pip_that_fails_is_reported_with_its_own_words(self, tmp_path):
        (tmp_path / "bin").mkdir()
        python = tmp_path / "bin" / "python"
        python.write_text(
            "#!/bin/sh\necho ERROR: No matching distribution found for x >&2\nexit 1\n"
        )
        python.chmod(0o755)
        pip = setup_pip.Pip(tmp_path, setup_pip.Progress("test"))

        with pytest.raises(SetupError, match="pip's index lacks a package") as caught:
            pip.install(["x"])

        assert "ERROR: No matching distribution found for x" in str(caught.value)

    def test_pip_is_ended_when_the_wait_is_interrupted(self, tmp_path, monkeypatch):
        (tmp_path / "bin").mkdir()
        python = tmp_path / "bin" / "python"
        python.write_text("#!/bin/sh\necho $$ > pid\nexec sleep 600\n")
        python.chmod(0o755)
        monkeypatch.chdir(tmp_path)
        pip = setup_pip.Pip(tmp_path, setup_pip.Progress("test"))

        def interrupt(_step):
            if (tmp_path / "pid").exists():
                raise KeyboardInterrupt

        monkeypatch.setattr(pip.progress, "tick", interrupt)
        with pytest.raises(KeyboardInterrupt):
            pip.install(["x"])

        pid = int((tmp_path / "pid").read_text())
        with pytest.raises(ProcessLookupError):
            install.os.kill(pid, 0)


def test_the_stamp_is_json_that_names_its_folder(made):
    folder, wanted = made
    stamp = json.loads((folder / install.STAMP).read_text(encoding="utf-8"))

    assert stamp == {
        "folder": str(folder),
        "python": list(sys.version_info[:2]),
        "locks": wanted,
    }
