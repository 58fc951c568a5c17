"""The table of pairs against a dict."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.features.interning import PairTable

NUMBER = st.one_of(st.integers(-1, 5), st.integers(2**31 - 3, 2**31 - 1))


@given(st.lists(st.lists(st.tuples(NUMBER, NUMBER), max_size=40), max_size=4))
@settings(deadline=None)
def test_ids_are_those_of_a_dict(batches):
    table, known, counts = PairTable(), {}, {}
    for batch in batches:
        left, right = (np.array([pair[k] for pair in batch], np.int32) for k in (0, 1))
        want = []
        for pair in batch:
            if min(pair) < 0:
                want.append(-1)
                continue
            want.append(known.setdefault(pair, len(known)))
            counts[pair] = counts.get(pair, 0) + 1
        assert table.add(left, right).tolist() == want
        assert table.find(left, right).tolist() == want
    assert list(zip(*(side.tolist() for side in table.sides()), strict=True)) == list(known)
    assert table.counts.tolist() == list(counts.values())


def test_it_grows_and_stays_exact():
    # multiples of 2^16 and 2^20 would fall into few slots of a weak hash
    left = (np.arange(200_000) % 450 << 16).astype(np.int32)
    right = (np.arange(200_000) // 450 << 20).astype(np.int32)
    table = PairTable()
    assert (table.add(left, right) == np.arange(200_000)).all()
    again = PairTable(table.entries)
    assert (again.find(left, right) == np.arange(200_000)).all()
    assert (again.find(left, right + 1) == -1).all()
    assert len(again) == 200_000
