"""What the server's log says of its batches, in the forms of several versions."""

import time

import pytest

from sgmatrix.node.batchlog import BatchLine, batch_line, batch_lines, log_size

STAMP = "2026-11-20 10:00:52"
AT = time.mktime(time.strptime(STAMP, "%Y-%m-%d %H:%M:%S"))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            (
                f"[{STAMP}] Decode batch, #running-req: 8, #token: 784, token usage: 0.12, "
                "cuda graph: True, gen throughput (token/s): 928.66, #queue-req: 3"
            ),
            BatchLine(AT, "decode", 0, 8, 3, 0.12, output_tok_s=928.66, graph=True),
        ),
        (
            (
                f"[{STAMP} DP2 TP0] Decode batch [1234], #running-req: 5, "
                "#full token: 9, full token usage: 0.30, swa token usage: 0.70, cpu graph: False, "
                "gen throughput (token/s): 1.00, #queue-req: 0"
            ),
            BatchLine(AT, "decode", 2, 5, 0, 0.7, output_tok_s=1.0, graph=False),
        ),
        (
            (
                f"[{STAMP}] TP0] Decode batch. #running-req: 1024, #token: 371002, "
                "token usage: 1.00, gen throughput (token/s): 2105.11, #queue-req: 512"
            ),
            BatchLine(AT, "decode", 0, 1024, 512, 1.0, output_tok_s=2105.11),
        ),
        (
            (
                f"[{STAMP}] Prefill batch, #new-seq: 7, #new-token: 448, #cached-token: 64, "
                "token usage: 0.01, #running-req: 1, #queue-req: 2, #pending-token: 0, "
                "cpu graph: False, input throughput (token/s): 15991.19"
            ),
            BatchLine(AT, "prefill", 0, 1, 2, 0.01, new_tokens=448, cached_tokens=64, graph=False),
        ),
        (
            (
                f"[{STAMP} TP0] KV cache pool is full. Retract requests. #retracted_reqs: 37, "
                "#new_tokens_gained: 900, #new_token_ratio: 0.7100 -> 0.9100"
            ),
            BatchLine(AT, "retract", 0, retracted=37),
        ),
        (
            (
                f"[{STAMP}] TP0] Decode out of memory happened. #retracted_reqs: 37, "
                "#new_token_ratio: 0.7100 -> 0.9100"
            ),
            BatchLine(AT, "retract", 0, retracted=37),
        ),
        (
            f"[{STAMP}] Testing retraction. #retracted_reqs: 2, #new_tokens_gained: 9",
            BatchLine(AT, "retract", 0, retracted=2),
        ),
        (
            (
                f"[{STAMP} DP1 TP4 EP4] Decode batch, #running-req: 8, accept len: 2.50, "
                "accept rate: 0.50, gen throughput (token/s): 400.00, #queue-req: 0"
            ),
            BatchLine(AT, "decode", 1, 8, 0, output_tok_s=400.0, accept_len=2.5, tensor_rank=4),
        ),
        (
            (
                "\rCapturing batches: 100%|##########| 4/4 [00:01<00:00,  3.2it/s]"
                f"[{STAMP}] Decode batch, #running-req: 8"
            ),
            BatchLine(AT, "decode", 0, 8),
        ),
        (
            f"Loading:   0%|  | 0/4 [00:00<?, ?it/s]\r[{STAMP}] Decode batch, #running-req: 8",
            BatchLine(AT, "decode", 0, 8),
        ),
        (f"text [1] 4/4 [{STAMP}] Decode batch, #running-req: 8", None),
        (f"[{STAMP} PP1 TP0] Decode batch, #running-req: 8", None),
        (f'[{STAMP}] INFO:     127.0.0.1:51044 - "POST /generate HTTP/1.1" 200 OK', None),
        ("Decode batch without a time", None),
    ],
    ids=[
        "decode",
        "ranks",
        "old decode",
        "prefill",
        "retract",
        "old retract",
        "retract for a test",
        "ranks of dp attention, speculative",
        "after a bar",
        "after the first bar",
        "quoted",
        "pipeline",
        "request",
        "none",
    ],
)
def test_a_line_says_what_it_says_and_no_more(text, want):
    assert batch_line(text) == want


def test_a_part_of_a_log_is_read_and_what_is_no_text_does_no_harm(tmp_path):
    log = tmp_path / "server.log"
    line = f"[{STAMP}] Decode batch, #running-req: {{}}, gen throughput (token/s): 2.0\n"
    log.write_bytes(line.format(1).encode() + b"\xff\xfe batch \x1b[0m\n")
    begin = log_size(log)
    with log.open("ab") as file:
        file.write(line.format(2).encode())
    end = log_size(log)
    with log.open("ab") as file:
        file.write(line.format(3).encode())

    assert [one.running for one in batch_lines(log)] == [1, 2, 3]
    assert [one.running for one in batch_lines(log, begin, end)] == [2]


def test_a_log_that_is_not_there_says_nothing(tmp_path):
    assert batch_lines(tmp_path / "server.log") == []
    assert log_size(tmp_path / "server.log") == 0


RETRACTED = "KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_tokens_gained: 900"


def test_of_dp_attention_the_first_tensor_rank_of_each_data_parallel_rank_is_read(tmp_path):
    """tp8 dp2: DP0 is TP0 to TP3, DP1 is TP4 to TP7; every one of them logs a retraction."""
    log = tmp_path / "server.log"
    texts = [
        f"[{STAMP} DP{dp} TP{4 * dp} EP{4 * dp}] Decode batch, #running-req: {8 + dp}"
        for dp in (0, 1)
    ]
    texts += [f"[{STAMP} DP1 TP{tp} EP{tp}] {RETRACTED}" for tp in (6, 4, 7, 5)]
    log.write_text("\n".join(texts))

    found = batch_lines(log)
    assert [(one.kind, one.rank, one.running) for one in found] == [
        ("decode", 0, 8),
        ("decode", 1, 9),
        ("retract", 1, None),
    ]
    assert [one.retracted for one in found] == [None, None, 3]


def test_a_retraction_without_a_batch_in_the_same_part_counts_once(tmp_path):
    log = tmp_path / "server.log"
    log.write_text("\n".join(f"[{STAMP} DP1 TP{tp}] {RETRACTED}" for tp in (5, 4, 6)))

    assert [one.tensor_rank for one in batch_lines(log)] == [4]


def test_a_megabyte_of_digits_is_passed_over_in_no_time():
    """A logged answer, cut into pieces: each digit could begin the count of a progress bar."""
    began_s = time.process_time()

    assert batch_line("1" * (1 << 20) + " batch") is None
    assert time.process_time() - began_s < 5
