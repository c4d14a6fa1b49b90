"""Special functions that are one operation each."""

from weft import _core

_DOC = """{summary}

    Args:
      {args}

    Returns:
      Array of a floating-point dtype{shape}.
"""


def _operation(op, name, summary, parameters=("x",)):
    args = ", ".join(parameters)
    one = len(parameters) == 1
    text = f"{args}: {'array or number' if one else 'arrays or numbers that broadcast together'}."
    doc = _DOC.format(
        summary=summary, args=text, shape=f" and of the shape of `{args}`" if one else ""
    )
    return _core.elementwise(op, "inexact", name, doc, "weft.scipy.special", None, parameters)


erf = _operation("erf", "erf", "The error function.")
erfc = _operation("erfc", "erfc", "1 - erf(x), accurate for large x.")
expit = _operation("logistic", "expit", "The logistic function, 1 / (1 + exp(-x)).")
gammaln = _operation(
    "lgamma", "gammaln", "Logarithm of the absolute value of the gamma function; inf at its poles."
)
digamma = _operation("digamma", "digamma", "Derivative of gammaln; NaN at its poles.")
gammainc = _operation(
    "igamma", "gammainc", "Regularized lower incomplete gamma function of a at x.", ("a", "x")
)
gammaincc = _operation(
    "igammac", "gammaincc", "1 - gammainc(a, x), accurate for large x.", ("a", "x")
)
betainc = _operation(
    "regularized_incomplete_beta",
    "betainc",
    "Regularized incomplete beta function with parameters a and b at x in 0..1.",
    ("a", "b", "x"),
)
i0e = _operation("bessel_i0e", "i0e", "i0(x) * exp(-|x|), which does not overflow.")
i1e = _operation("bessel_i1e", "i1e", "i1(x) * exp(-|x|), which does not overflow.")
