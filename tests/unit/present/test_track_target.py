"""Where tracking goes, and that no password gets where it could be read."""

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.present.tracking.target import DEFAULT_DATABASE, check_asked, find_target

SECRET = "SENTINEL-tracking-word"


def test_without_a_word_it_is_the_database_of_the_results():
    target = find_target(None, {})

    assert (target.database, target.public) == (DEFAULT_DATABASE, "results/mlflow.db")
    assert not target.is_server


def test_what_is_asked_for_comes_before_the_environment():
    target = find_target("http://127.0.0.1:5000/", {"MLFLOW_TRACKING_URI": "http://other:1"})

    assert (target.uri, target.is_server) == ("http://127.0.0.1:5000", True)


def test_user_and_password_of_the_environments_uri_go_where_no_one_prints_them():
    target = find_target(None, {"MLFLOW_TRACKING_URI": f"https://me:{SECRET}%40@host:5000/ml"})

    assert (target.uri, target.username) == ("https://host:5000/ml", "me")
    assert target.password == f"{SECRET}@"
    assert SECRET not in repr(target) + target.public


def test_a_database_keeps_its_password_for_the_driver_alone():
    uri = f"postgresql+psycopg2://me:{SECRET}@host/db?sslmode=require"
    target = find_target(None, {"MLFLOW_TRACKING_URI": uri})

    assert target.uri == uri
    assert target.public == "postgresql+psycopg2://host/db"
    assert SECRET not in repr(target)


@pytest.mark.parametrize(
    "asked",
    [
        f"http://me:{SECRET}@host:5000",
        f"http://{SECRET}@host:5000",
        f"postgresql+psycopg2://me:{SECRET}@host/db",
        f"postgresql+psycopg2://me@host/db?password={SECRET}",
    ],
)
def test_a_secret_on_the_command_line_is_refused_with_the_mend_and_not_repeated(asked):
    with pytest.raises(SgmatrixError, match="MLFLOW_TRACKING_PASSWORD") as caught:
        check_asked(asked)

    assert SECRET not in str(caught.value) and "host" in str(caught.value)


@pytest.mark.parametrize("asked", ["mlruns", "file:///x", "http://", "sqlite://", "http://h:x/"])
def test_what_is_no_place_for_runs_is_refused_with_what_is_allowed(asked):
    with pytest.raises(SgmatrixError, match="allowed: sqlite:///<file>"):
        find_target(asked, {})


def test_a_user_of_a_database_is_no_secret():
    assert find_target("postgresql+psycopg2://me@host/db", {}).uri.startswith("postgresql")


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql+psycopg2://me:a/{SECRET}@host/db",
        f"http://me:a/{SECRET}@host",
        f"http:/me:{SECRET}@host",
        f"me:{SECRET}@host/db",
        f"foo://host/db?password={SECRET}",
    ],
)
def test_a_password_in_a_uri_of_a_wrong_form_is_not_repeated(uri):
    with pytest.raises(SgmatrixError, match=r"MLFLOW_TRACKING_URI = .*host") as caught:
        find_target(None, {"MLFLOW_TRACKING_URI": uri})

    assert SECRET not in str(caught.value)
