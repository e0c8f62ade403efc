"""Forced tokens, and the probability that each had, carried by the logit of another token."""

import importlib.util
import math
import pickle
import sys
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

CARRIERS = [0, 1]
VOCABULARY = 64


@pytest.fixture(scope="module")
def forced():
    """The processor: on SGLang's own base class where there is one, on an empty one elsewhere."""
    place = "sglang.srt.sampling.custom_logit_processor"
    if importlib.util.find_spec("sglang") is not None:
        from sglang_oea import forced

        return forced
    with pytest.MonkeyPatch.context() as patch:
        base = ModuleType(place)
        base.CustomLogitProcessor = object
        for end in range(len(place.split("."))):
            name = ".".join(place.split(".")[: end + 1])
            patch.setitem(sys.modules, name, base if name == place else ModuleType(name))
        from sglang_oea import forced

        return forced


@pytest.fixture
def processor(forced):
    return forced.ForcedTokens()


def logits(rows, *, seed=20251104, spread=3.0, dtype=torch.float32):
    drawn = torch.randn(rows, VOCABULARY, generator=torch.Generator().manual_seed(seed))
    return (spread * drawn).to(dtype)


def asked(*tokens):
    return {"tokens": list(tokens), "carriers": CARRIERS}


def true_logprob(carried):
    """What a reader of the carrier makes of it: sgmatrix.load.probe.quality says why."""
    return carried - math.log(-math.expm1(carried)) if carried < 0 else 0.0


def told(row, token):
    """The probability that a row's carrier stands for, as the server would return it."""
    carrier = CARRIERS[1] if token == CARRIERS[0] else CARRIERS[0]
    return true_logprob(torch.log_softmax(row.float(), dim=-1)[carrier].item())


def before(row, token):
    """The same by plain arithmetic, in double precision."""
    values = row.double().tolist()
    top = max(values)
    return values[token] - top - math.log(math.fsum(math.exp(value - top) for value in values))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_forced_token_wins_and_its_carrier_tells_what_it_had(processor, dtype):
    rows = logits(32, dtype=dtype)
    tokens = list(range(2, 34))

    out = processor(rows, [asked(token) for token in tokens])

    assert out.shape == rows.shape
    assert out.argmax(-1).tolist() == tokens
    exact = 1e-4 if dtype == torch.float32 else 0.1  # bfloat16 has 8 bits for what is carried
    for row, original, token in zip(out, rows, tokens, strict=True):
        assert told(row, token) == pytest.approx(before(original, token), abs=exact)


def test_its_own_probability_is_nearly_1_so_that_the_engine_samples_it(processor):
    (row,) = processor(logits(1), [asked(9)])

    # beside it there is the carrier alone, with what the token had
    had = math.exp(before(logits(1)[0], 9))
    assert torch.softmax(row, -1)[9].item() == pytest.approx(1 / (1 + had), abs=1e-6)
    assert torch.softmax(row, -1).sort().values[-3].item() == 0.0


def test_the_logits_that_were_given_are_left_as_they_are(processor):
    rows = logits(2)
    processor(rows, [asked(5), asked(6)])

    assert torch.equal(rows, logits(2))


@pytest.mark.parametrize("token", CARRIERS)
def test_a_token_that_is_a_carrier_itself_is_carried_by_the_other(processor, token):
    rows = logits(1)
    (row,) = processor(rows, [asked(token)])

    assert row.argmax().item() == token
    assert told(row, token) == pytest.approx(before(rows[0], token), abs=1e-4)


def test_a_token_that_is_all_but_certain_is_still_the_most_likely(processor):
    rows = torch.zeros(1, VOCABULARY)
    rows[0, 7] = 60.0
    (row,) = processor(rows, [asked(7)])

    assert row.argmax().item() == 7
    assert told(row, 7) == pytest.approx(0.0, abs=1e-5)
    assert row[CARRIERS[0]].item() < 0


def test_a_token_that_is_all_but_impossible_is_told_to_the_end_of_the_range(processor):
    rows = torch.zeros(2, VOCABULARY)
    rows[0, 7], rows[1, 7] = -50.0, -500.0
    out = processor(rows, [asked(7), asked(7)])

    # 63 others share what there is
    assert told(out[0], 7) == pytest.approx(-50.0 - math.log(63), abs=1e-4)
    assert told(out[1], 7) == pytest.approx(-80.0, abs=1e-4)
    assert torch.isfinite(out).all()


def test_each_request_goes_on_through_its_own_text(processor):
    one, two = asked(5, 6, 7), asked(8, 9, 10)

    assert processor(logits(1), [one]).argmax(-1).tolist() == [5]
    assert processor(logits(2), [one, two]).argmax(-1).tolist() == [6, 8]
    assert processor(logits(2), [two, one]).argmax(-1).tolist() == [9, 7]  # rows may move


def test_a_step_beyond_the_text_forces_its_last_token(processor):
    """The engine runs a step ahead of what it has sent."""
    one = asked(5, 6)
    seen = [processor(logits(1), [one]).argmax(-1).item() for _ in range(4)]

    assert seen == [5, 6, 6, 6]


def test_rows_without_a_request_are_left_to_nothing(processor):
    out = processor(logits(2), None)

    assert torch.all(out == out[0, 0])


def test_the_class_is_found_by_its_name_as_a_request_names_it(forced):
    """SGLang unpickles what a request holds; the harness sends these words."""
    named = pickle.loads(b"csglang_oea.forced\nForcedTokens\n.")

    assert named is forced.ForcedTokens
