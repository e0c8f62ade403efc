"""Is one server configuration better than another? Statistics over launches; see docs/comparing.md.

Entry points: `compare.conclude` for the report, `compare.decision` after each round, with
`inputs.Series` and `inputs.Rules` going in and `results.Comparison` coming out.
"""
