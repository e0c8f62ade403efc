"""Take the small part of a campaign that a page stands on, and make the page's figures of it.

    python -m sgmatrix.present.case_study take results/<campaign> docs/<page>
    python -m sgmatrix.present.case_study draw docs/<page>

`take` writes docs/<page>/<campaign>/*.parquet; `draw` reads all of them and nothing else, writes
the figures beside them and the tables into docs/<page>.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import write_text
from sgmatrix.core.layout import Layout
from sgmatrix.present.case_study.figures import files
from sgmatrix.present.case_study.page import with_tables
from sgmatrix.present.case_study.store import FACTS, Study, read_study, take
from sgmatrix.present.case_study.tables import table


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    taking = verbs.add_parser("take", help="out of the results of a campaign")
    taking.add_argument("results", type=Path)
    taking.add_argument("page", type=Path, help="folder beside the page, without .md")
    drawing = verbs.add_parser("draw", help="all figures and tables anew")
    drawing.add_argument("page", type=Path)
    asked = parser.parse_args(arguments)
    try:
        if asked.verb == "take":
            layout = Layout(asked.results)
            take(layout, asked.page / layout.root.resolve().name)
        else:
            redraw(asked.page)
    except SgmatrixError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    return 0


def redraw(page: Path) -> None:
    """Make the figures and the tables of a page anew.

    Args:
        page: the folder of its data; the page itself lies beside it.
    """
    studies = {one.facts["campaign"]: one for one in read_studies(page)}
    for study in studies.values():
        for name, text in files(study).items():
            write_text(study.folder / name, text)

    def made(campaign: str, name: str) -> str:
        if campaign not in studies:
            raise SgmatrixError(
                "config_rejected",
                f"the page shows {campaign}, which was not taken",
                fix=f"one of {', '.join(studies) or 'none'}",
            )
        return table(studies[campaign], name)

    file = page.with_suffix(".md")
    write_text(file, with_tables(file.read_text(encoding="utf-8"), made))


def read_studies(page: Path) -> list[Study]:
    """Return what was taken for a page, by the campaigns' names."""
    return [read_study(path.parent) for path in sorted(page.glob(f"*/{FACTS}"))]


if __name__ == "__main__":
    sys.exit(main())
