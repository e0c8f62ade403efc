"""The harness version: part of every record and of the measuring jobs' params.

Raise it when code that can change a measured number changes. Snakemake then measures
again, which no script time stamp makes it do, and the change shows in the records.
"""

HARNESS_VERSION = 4
