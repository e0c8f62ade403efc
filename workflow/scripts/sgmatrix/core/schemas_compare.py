"""Arrow schemas of what stands beside the points: comparisons, and experts by step."""

from __future__ import annotations

import pyarrow as pa

from sgmatrix.core.schemas import field, nullable

COMPARISONS_VERSION = 1
EXPERTS_VERSION = 1
COMPARISON_VERSION = 1

_TEXT, _I32, _F64, _BOOL = pa.string(), pa.int32(), pa.float64(), pa.bool_()

_concluded = nullable("too few pairs")
_judged = nullable("fewer than three launches of one campaign")
_meant = nullable("no launch with a value that is not barred")

COMPARISONS = pa.schema(
    [
        field("campaign", _TEXT, "name of the campaign", null=False),
        field("comparison", _TEXT, "its name in `compare`", null=False),
        field("baseline", _TEXT, "cell id", null=False),
        field("variant", _TEXT, "cell id", null=False),
        field("metric", _TEXT, "column of `points`", null=False),
        field("load_id", _TEXT, "load point", null=False),
        field("primary", _BOOL, "whether the comparison is decided here", null=False),
        field(
            "verdict", _TEXT, "better | worse | no_difference | undecided | no_verdict", null=False
        ),
        field("verdict_text", _TEXT, "the verdict in words", null=False),
        _concluded(
            "effect_percent", _F64, "variant over baseline - 1, geometric mean of the pairs"
        ),
        _concluded(
            "interval_low_percent", _F64, "t interval over the pairs; agrees with the verdict"
        ),
        _concluded("interval_high_percent", _F64, "its other end"),
        _concluded("confidence", _F64, "of the interval, 0 to 1"),
        field("bootstrap_low_percent", _F64, "bootstrap interval", null="below 10 pairs"),
        field("bootstrap_high_percent", _F64, "its other end", null="below 10 pairs"),
        _concluded("p", _F64, "two-sided t test of no difference"),
        _concluded("p_adjusted", _F64, "the same over load points and looks"),
        _concluded(
            "p_equivalence_adjusted", _F64, "of a difference of the bound or more, likewise"
        ),
        field("bound_percent", _F64, "difference below which both are as good", null=False),
        field("pairs", _I32, "complete pairs of launches", null=False),
        field("left_out", _I32, "rounds with a value that is missing or barred", null=False),
        _concluded("baseline_mean", _F64, "geometric mean over the pairs, unit of the metric"),
        _concluded("variant_mean", _F64, "geometric mean over the pairs, unit of the metric"),
        field(
            "noise_floor_percent",
            _F64,
            "typical difference of two launches of the baseline",
            null="no pairs of launches of the baseline",
        ),
        field("noise_pairs", _I32, "pairs of launches of the baseline", null=False),
        field("more_launches", _I32, "further launches per arm that would decide", null="unknown"),
        field("note", _TEXT, "what qualifies the verdict", null="nothing to add"),
        field(
            "warning", _TEXT, "what speaks against trusting it", null="nothing speaks against it"
        ),
        field("launches_planned", _I32, "launches per arm in the budget", null=False),
        field("launches_used", _I32, "launches per arm that it rests on", null=False),
        field("looks_planned", _I32, "how often it may be looked at", null=False),
        field("look", _I32, "number of the look that it rests on; 0: before the first", null=False),
        field("stopped", _BOOL, "no further launch is needed, or none is left", null=False),
        field("why", _TEXT, "why it stopped or goes on", null=False),
    ]
)

EXPERTS = pa.schema(
    [
        field("campaign", _TEXT, "name of the campaign", null=False),
        field("cell", _TEXT, "cell id", null=False),
        field("cell_key", _TEXT, "sha256 of what makes the server", null=False),
        field("attempt", _I32, "execution of the probe", null=False),
        field("batch", _I32, "requests that were decoded together, asked", null=False),
        field("step", _I32, "decode step of that batch size, from 0", null=False),
        field("layer", _I32, "layer of the model", null=False),
        field("tokens", _I32, "tokens in the step", null=False),
        field("activated", _I32, "distinct experts that the step read in the layer", null=False),
        field("experts", _I32, "routed experts of the layer", null=False),
        field("top_k", _I32, "experts per token that the model asks for", null=False),
    ]
)

COMPARISON = pa.schema(
    [
        field("base", _TEXT, "what the base campaign is called here", null=False),
        field("other", _TEXT, "what the other campaign is called here", null=False),
        field("cell", _TEXT, "cell id", null=False),
        field("load_id", _TEXT, "load point", null=False),
        field("concurrency", _I32, "closed loop: requests in flight, asked", null="open loop"),
        field("request_rate", _F64, "open loop: requests per second, asked", null="closed loop"),
        field("metric", _TEXT, "column of `points`", null=False),
        field(
            "verdict", _TEXT, "better | worse | no_difference | undecided | no_verdict", null=False
        ),
        field("verdict_text", _TEXT, "the verdict in words, of the other campaign", null=False),
        _judged(
            "effect_percent", _F64, "other over base - 1, of the geometric means over launches"
        ),
        _judged("interval_low_percent", _F64, "Welch interval; agrees with the verdict"),
        _judged("interval_high_percent", _F64, "its other end"),
        _judged("confidence", _F64, "of the interval, 0 to 1"),
        _judged("p", _F64, "two-sided Welch test of no difference"),
        _judged("p_adjusted", _F64, "the same by Holm over the load points of the cell"),
        _judged("p_equivalence_adjusted", _F64, "of a difference of the bound or more, likewise"),
        field("bound_percent", _F64, "difference below which both are as good", null=False),
        field("base_launches", _I32, "launches whose value is used", null=False),
        field("other_launches", _I32, "launches whose value is used", null=False),
        field("base_left_out", _I32, "launches whose value is missing or barred", null=False),
        field("other_left_out", _I32, "launches whose value is missing or barred", null=False),
        _meant("base_mean", _F64, "geometric mean over the launches, unit of the metric"),
        _meant("other_mean", _F64, "geometric mean over the launches, unit of the metric"),
        field(
            "noise_floor_percent",
            _F64,
            "typical difference of two launches of one campaign",
            null="no campaign with two launches",
        ),
        field("note", _TEXT, "what qualifies the verdict", null="nothing to add"),
        field(
            "warning", _TEXT, "what speaks against trusting it", null="nothing speaks against it"
        ),
        field(
            "base_engine_version",
            _TEXT,
            "what the running servers reported, each once",
            null="none did",
        ),
        field(
            "other_engine_version",
            _TEXT,
            "what the running servers reported, each once",
            null="none did",
        ),
    ]
)
