"""The one compiled signature that every model kernel has.

A model packs its bound data into three flat arrays, so that one compiled loop can take any model's kernel as an
argument: M models and S loops cost M + S compilations, and the loops of the solvers run without Python.

    plane(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result) -> planes

====================  =================================================================================================
meta, ints, floats    the packed data; only the model's own kernel knows the layout
w                     weights (n_weights,), or longer: what follows is not the model's
example               which example
cost_weight           lam in  argmax_y  w.phi(x, y) + lam * cost(y)
emit                  the most planes wanted; 0: only decode
iwork, fwork          scratch of the sizes the bound model names; ``iwork`` starts as zeros and is handed back as it was
output                receives the decoded output, in the model's own integer code
index, value          receive the non-zeros of the planes, one after the other, no index twice in a plane
result                receives [w.phi(x, y) - w.phi(x, y_i) + lam * cost(y), upper bound of that over all y,
                      b of plane 0, end of plane 0 in (index, value), b of plane 1, end of plane 1, ...];
                      the cost of the decoded output stands at ``result[2]`` also when nothing is emitted
returns               number of planes written, or -1 when no output is allowed at all
====================  =================================================================================================

Plane 0 is that of the decoded output: ``phi(x, y_i) - phi(x, y)`` and its cost. A model may add planes of other
outputs that it finds on the way, for instance those that differ from the truth in one place only.

Kernels never raise; they answer with numbers.

Where the outputs of a model are labels, and ``phi(x, y)`` is one vector x in the weights of label y, the whole block of
an example can be solved at once. Such a model gives two more functions (:class:`maxmargin.contracts.LabelBlocks`):

    scores(meta, ints, floats, w, example, score, cost) -> the true label        score[y] = w . phi(x, y), cost[y]
    add(meta, ints, floats, example, change, w)                                  w += sum_y change[y] phi(x, y)
    fetch(meta, ints, floats, w, near, far)                   a hint: example near comes next, and far a little later

Where the outputs are sets t of labels, ``phi(x, t)`` is x in the weights of each label of t, and the costs add up over
labels, ``cost[k]`` is what label k adds to the cost when it joins the output (negative where it belongs there), and two
further functions speak of the convex hull H of the outputs, as vectors of 0 and 1; ``work`` is scratch (6 M,):

    excess(meta, ints, floats, example, r, work) -> max_(y in H) r . (y - t)
    retreat(meta, ints, floats, example, v, work)                   v becomes  t - (the point of H nearest to t + v)

A *search* is a kernel with the model's own as its first argument, which it asks once or several times:

    search(plane, meta, ints, floats, w, example, cost_weight, ...) -> planes

Its planes are as above, ``(psi, cost)`` each; ``result[0]`` and ``result[1]`` are the value and the upper bound of what
the search maximises (:mod:`maxmargin.models.search_kernel`). Its ``result`` has one entry more, the last: how many
argmaxes it has asked; the caller puts 1 there, and searches that ask more write their number. One search serves every
model, one model every search. Those that maximise ``cost^p (lam - w . psi)`` read p in ``floats`` where the last entry
of ``meta`` says, and behind it a number per example, if they need one.
"""

from __future__ import annotations

from numba import types

__all__ = [
    "ADD_FUNCTION", "ADD_SIGNATURE", "DECODE_SIGNATURE", "EXCESS_FUNCTION", "EXCESS_SIGNATURE", "FETCH_FUNCTION",
    "FETCH_SIGNATURE", "PLANE_FUNCTION", "PLANE_SIGNATURE", "RETREAT_FUNCTION", "RETREAT_SIGNATURE", "SCORES_FUNCTION",
    "SCORES_SIGNATURE", "SEARCH_FUNCTION", "SEARCH_SIGNATURE",
]  # fmt: skip

_i8, _f8 = types.int64, types.float64
_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]

_ARGUMENTS = (_i8s, _i4s, _f8s, _f8s, _i8, _f8, _i8, _i4s, _f8s, _i4s, _i4s, _f8s, _f8s)
PLANE_SIGNATURE = _i8(*_ARGUMENTS)
PLANE_FUNCTION = types.FunctionType(PLANE_SIGNATURE)
SEARCH_SIGNATURE = _i8(PLANE_FUNCTION, *_ARGUMENTS)
SEARCH_FUNCTION = types.FunctionType(SEARCH_SIGNATURE)
DECODE_SIGNATURE = _i8(
    PLANE_FUNCTION, _i8s, _i4s, _f8s, _f8s, _i8s, _f8, _i4s, _f8s, _i4s, _i8s, _i4s, _f8s, _f8s, _f8s
)  # of decode_batch in models/search_kernel.py
SCORES_SIGNATURE = _i8(_i8s, _i4s, _f8s, _f8s, _i8, _f8s, _f8s)
SCORES_FUNCTION = types.FunctionType(SCORES_SIGNATURE)
ADD_SIGNATURE = types.void(_i8s, _i4s, _f8s, _i8, _f8s, _f8s)
ADD_FUNCTION = types.FunctionType(ADD_SIGNATURE)
FETCH_SIGNATURE = types.void(_i8s, _i4s, _f8s, _f8s, _i8, _i8)
FETCH_FUNCTION = types.FunctionType(FETCH_SIGNATURE)
EXCESS_SIGNATURE = _f8(_i8s, _i4s, _f8s, _i8, _f8s, _f8s)
EXCESS_FUNCTION = types.FunctionType(EXCESS_SIGNATURE)
RETREAT_SIGNATURE = types.void(_i8s, _i4s, _f8s, _i8, _f8s, _f8s)
RETREAT_FUNCTION = types.FunctionType(RETREAT_SIGNATURE)
