"""Ids: random, well formed, and no part of the program's own randomness."""

import os
import random
import re
import threading

from gymlog import ids


def test_ids_are_lower_case_hex_of_w3c_length_and_never_repeat():
    """32 and 16 digits; thousands of them, over several batches, are all different."""
    span_ids = [ids.new_span_id() for _ in range(3000)]
    trace_ids = [ids.new_trace_id() for _ in range(3000)]
    assert all(re.fullmatch("[0-9a-f]{16}", span_id) for span_id in span_ids)
    assert all(re.fullmatch("[0-9a-f]{32}", trace_id) for trace_id in trace_ids)
    assert len({*span_ids}) == len({*trace_ids}) == 3000
    assert "0" * 16 not in span_ids


def test_every_digit_of_a_trace_id_is_random():
    """W3C's random-trace-id flag promises the last 56 bits; all 32 places vary here."""
    trace_ids = [ids.new_trace_id() for _ in range(400)]
    assert all(len({trace_id[place] for trace_id in trace_ids}) == 16 for place in range(32))


def test_a_seeded_program_does_not_repeat_ids():
    """`random.seed` by the program has no influence."""
    random.seed(10)
    first = [ids.new_trace_id() for _ in range(300)]
    random.seed(10)
    assert {*first}.isdisjoint([ids.new_trace_id() for _ in range(300)])


def test_ids_take_nothing_from_the_programs_generator():
    """The program's next random number is the one it would have been."""
    random.seed(10)
    expected = random.random()
    random.seed(10)
    for _ in range(600):
        ids.new_span_id()
    assert random.random() == expected


def test_threads_share_no_id():
    """Several threads drawing at once get different ids."""
    drawn: list[list[str]] = [[] for _ in range(4)]
    threads = [
        threading.Thread(
            target=lambda mine=mine: mine.extend(ids.new_span_id() for _ in range(3000))
        )
        for mine in drawn
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({span_id for mine in drawn for span_id in mine}) == 4 * 3000


def test_a_forked_child_draws_other_ids():
    """Neither the batch that lies ready nor the generator's state is drawn twice."""
    ids.new_span_id()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write_end, "".join(ids.new_span_id() for _ in range(600)).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    text = os.read(read_end, 16 * 600).decode()
    os.close(read_end)
    os.close(write_end)
    of_child = {text[i : i + 16] for i in range(0, len(text), 16)}
    assert len(of_child) == 600
    assert of_child.isdisjoint(ids.new_span_id() for _ in range(600))
