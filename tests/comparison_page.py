"""The comparisons of a page, as a reader sees them, and values that a verdict follows from."""

from html.parser import HTMLParser

# Mean TPOT in ms of three rounds: the baseline's, and of variants that are worse, better, unsure.
BASE = (10.0, 20.0, 15.0)
WORSE, BETTER = (20.0, 40.1, 29.95), (5.0, 10.02, 7.49)
UNSURE = (11.0, 18.0, 15.1)


class Section(HTMLParser):
    """The comparisons of a page: its text, its tables as rows, the class of each cell and note."""

    def __init__(self, html):
        super().__init__()
        self.parts, self.tables, self.classes, self.notes = [], [], [], []
        self.cell = False
        start = html.find('<section aria-labelledby="comparisons">')
        self.there = start >= 0
        if self.there:
            self.feed(html[start : html.index("</section>", start)])
        self.text = " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag, attrs):
        name = dict(attrs).get("class", "")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.classes.append(name)
            self.cell = True
        elif tag == "div" and name.startswith("note"):
            self.notes.append(name.strip())
        elif tag in ("br", "small"):
            self.handle_data(" ")

    def handle_endtag(self, tag):
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data):
        self.parts.append(data)
        if self.cell:
            self.tables[-1][-1][-1] += data

    def rows(self, index):
        head, *rows = [[" ".join(text.split()) for text in row] for row in self.tables[index]]
        return [dict(zip(head, row, strict=True)) for row in rows]
