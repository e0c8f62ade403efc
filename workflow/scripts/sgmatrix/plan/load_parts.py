"""The parts of a campaign file that say what is offered to a server, and what counts as valid."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from sgmatrix.core.closed import Closed
from sgmatrix.plan.closed import Concurrency, Rate, Seconds, Share, sorted_once

Kind = Literal["auto", "rust", "python"]
Dataset = Literal["random-ids", "topical", "shared-prefix", "custom"]


class Requests(Closed):
    """How many requests a load point offers: max(min, per_concurrency x concurrency)."""

    min: int = Field(8, ge=1, description="requests per load point, at the least")
    per_concurrency: int = Field(
        4, ge=1, description="requests per stream; in the open loop: seconds of that rate"
    )
    duration_s: Seconds | None = Field(
        None,
        le=7 * 86400,
        description="instead of `per_concurrency`: as many requests as are expected in this time, "
        "from the rate, or from a wave at the same concurrency before it",
    )


class Client(Closed):
    """SGLang's own load client, one and the same for all cells of a campaign."""

    engine: str | None = Field(None, description="installation it comes from; default: `engine`")
    kind: Kind = Field("auto", description="auto: rust where it is there and covers the load")


def _short_form(value: Any) -> Any:
    """Return `client: rust` as the mapping that it stands for."""
    return {"kind": value} if isinstance(value, str) else value


class SharedPrefix(Closed):
    """Prompts in groups, each with a beginning of its own that its prompts have in common."""

    groups: int = Field(4, ge=1, le=65536, description="how many different beginnings")
    prefix_len: int = Field(ge=1, description="tokens that the prompts of a group have in common")


class Slo(Closed):
    """Service level objective: what a request must keep to count as good."""

    ttft_ms: float | None = Field(None, gt=0, description="milliseconds to the first token")
    tpot_ms: float | None = Field(None, gt=0, description="milliseconds per further token")
    e2e_ms: float | None = Field(None, gt=0, description="milliseconds to the last token")

    @model_validator(mode="after")
    def _not_empty(self) -> Slo:
        if self.ttft_ms is None and self.tpot_ms is None and self.e2e_ms is None:
            raise ValueError("give at least one of ttft_ms, tpot_ms and e2e_ms")
        return self


class Lengths(Closed):
    """Other lengths of the same prompts, offered to the same servers."""

    input_len: int = Field(ge=1, description="prompt tokens per request")
    output_len: int = Field(ge=1, description="output tokens per request")
    concurrency: list[Concurrency] = Field(
        [], description="requests in flight; default: `load.concurrency`"
    )

    @field_validator("concurrency")
    @classmethod
    def _concurrency_once(cls, value: list[int]) -> list[int]:
        return sorted_once(value, "concurrency")


class Load(Closed):
    """What is offered to every running server."""

    dataset: Dataset = Field(
        "random-ids",
        description="random-ids: random token ids of fixed lengths; topical: prompts about a few "
        "topics; shared-prefix: groups with a common beginning; custom: prompts of a file",
    )
    path: str | None = Field(
        None, description="of `custom`: JSONL with a key prompt, text or conversations per line"
    )
    shared_prefix: SharedPrefix | None = Field(None, description="of `shared-prefix`")
    concurrency: list[Concurrency] = Field(
        [],
        description="closed loop: requests in flight; one load point each, from the lowest up",
    )
    request_rate: list[Rate] = Field(
        [],
        validate_default=True,
        description="open loop: requests per second, at random moments; one load point each",
    )
    max_concurrency: Concurrency | None = Field(
        None, description="of the open loop: requests in flight at the most; more of them wait"
    )
    burstiness: float = Field(
        1.0, gt=0, le=1000, description="of the open loop: 1 Poisson, below 1 in bursts, above even"
    )
    input_len: int = Field(ge=1, description="prompt tokens per request")
    output_len: int = Field(ge=1, description="output tokens per request")
    also: list[Lengths] = Field(
        [], description="closed loop: further lengths, measured in the same launches"
    )
    requests: Requests = Requests()
    slo: Slo | None = Field(None, description="what a request must keep to be counted as goodput")
    seed: int = Field(1, ge=0, lt=2**31, description="campaign seed; each point derives its own")
    client: Annotated[
        Client, BeforeValidator(_short_form, json_schema_input_type=Client | Kind)
    ] = Client()

    @field_validator("concurrency")
    @classmethod
    def _concurrency_once(cls, value: list[int]) -> list[int]:
        return sorted_once(value, "concurrency")

    @field_validator("request_rate")
    @classmethod
    def _rate_once(cls, value: list[float], info: ValidationInfo) -> list[float]:
        if not value and info.data.get("concurrency") == []:
            raise ValueError("give concurrency (closed loop) or request_rate (open loop), or both")
        return sorted_once(value, "request rate")

    @model_validator(mode="after")
    def _whole(self) -> Load:
        problems = [text for text, wrong in self._problems() if wrong]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def workloads(self) -> list[Load]:
        """Return the load of each pair of lengths, its own first; the open loop has no others."""
        own = self.model_copy(update={"also": []})
        more = [
            own.model_copy(
                update={
                    "input_len": one.input_len,
                    "output_len": one.output_len,
                    "concurrency": one.concurrency or self.concurrency,
                    "request_rate": [],
                }
            )
            for one in self.also
        ]
        return [own, *more]

    def _problems(self) -> list[tuple[str, bool]]:
        lengths = [(self.input_len, self.output_len)]
        lengths += [(one.input_len, one.output_len) for one in self.also]
        prefix = self.shared_prefix
        open_loop = self.max_concurrency is not None or self.burstiness != 1
        return [
            (
                "max_concurrency and burstiness are of the open loop; give request_rate",
                open_loop and not self.request_rate,
            ),
            (
                "dataset custom needs path, and no other dataset has one",
                (self.dataset == "custom") != (self.path is not None),
            ),
            (
                "dataset shared-prefix needs shared_prefix, and no other dataset has it",
                (self.dataset == "shared-prefix") != (prefix is not None),
            ),
            (
                "output_len is at least 4 for the datasets topical and custom",
                self.dataset in ("topical", "custom") and min(o for _, o in lengths) < 4,
            ),
            (
                "shared_prefix.prefix_len must be less than input_len",
                prefix is not None and prefix.prefix_len >= min(i for i, _ in lengths),
            ),
            (
                "also is of the closed loop; give concurrency, here or in each of also",
                not self.concurrency and any(not one.concurrency for one in self.also),
            ),
            ("also gives lengths that stand there already", len(set(lengths)) < len(lengths)),
        ]


class LoadOverride(Closed):
    """Keys of `load` that are other for some cells."""

    concurrency: list[Concurrency] | None = Field(
        None, min_length=1, description="instead of `load.concurrency`"
    )
    request_rate: list[Rate] | None = Field(
        None, min_length=1, description="instead of `load.request_rate`"
    )
    input_len: int | None = Field(None, ge=1, description="instead of `load.input_len`")
    output_len: int | None = Field(None, ge=1, description="instead of `load.output_len`")
    requests: Requests | None = Field(None, description="instead of `load.requests`")

    @field_validator("concurrency")
    @classmethod
    def _concurrency_once(cls, value: list[int] | None) -> list[int] | None:
        return None if value is None else sorted_once(value, "concurrency")

    @field_validator("request_rate")
    @classmethod
    def _rate_once(cls, value: list[float] | None) -> list[float] | None:
        return None if value is None else sorted_once(value, "request rate")


class Warmup(Closed):
    """Full concurrency waves in the cell's own shapes until two of them agree."""

    max_waves: int = Field(5, ge=0, le=100, description="0: no warm-up, points are flagged cold")
    agreement: float = Field(0.1, gt=0, lt=1, description="relative difference of two waves")


class Telemetry(Closed):
    """What is read beside the measurement, from before the start of a server to its end."""

    hz: float = Field(2.0, ge=0, le=20, description="samples per second; 0: none is taken")


class Validity(Closed):
    """Thresholds of the validity flags; docs/metrics.md has the rules."""

    min_completed_share: Share = Field(1.0, description="partial: below this share of requests")
    length_tolerance: Share = Field(
        0.05, description="length_mismatch: tokens that differ from what was asked by more"
    )
    max_cached_share: Share = Field(
        0.01, description="cache_hits: prompt tokens from the prefix cache above this share"
    )
    min_load_share: Share = Field(
        0.95,
        description="rate_limited, queue_limited: running requests below this share of those asked",
    )
    max_queued_share: Share = Field(
        0.1, description="queue_limited: share of decode steps in which others had to wait"
    )
    max_client_cpu_share: Share = Field(
        0.8, description="client_limited: of the CPUs that the load client may use"
    )
    max_python_client_cpu_share: Share = Field(
        0.25, description="client_limited: of the one CPU that SGLang's Python client can use"
    )
    max_client_delay_share: Share = Field(
        0.05, description="client_limited: share of the time that its threads wait for a CPU"
    )
    max_client_gap: Share = Field(
        0.15,
        description="client_limited: times between tokens that differ by this share from the "
        "server's own",
    )
    max_foreign_share: Share = Field(
        0.1, description="foreign_load: of the machine's CPUs, used by something else"
    )
    max_throttled_share: Share = Field(
        0.05, description="throttled: share of samples in which a GPU lowered its clocks"
    )
    min_telemetry_share: Share = Field(
        0.5, description="no_telemetry: samples that are there, of those expected"
    )
