"""Two tiny kernels, made anew by each call, as a fresh process would."""

from maxmargin.kernel import kernel


def two_kernels():
    @kernel("int64(int64)")
    def one_more(x):
        return x + 1

    @kernel("int64(int64)")
    def one_less(x):
        return x - 1

    return one_more, one_less
