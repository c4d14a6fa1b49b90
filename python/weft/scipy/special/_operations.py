"""Special functions that are one operation each."""

from weft import _core
from weft._surface import example_section

_DOC = """{summary}

    Args:
      {args}

    Returns:
      Array of a floating-point dtype{shape}.

    {example}
"""


def _operation(op, name, summary, parameters=("x",), *, example):
    args = ", ".join(parameters)
    one = len(parameters) == 1
    text = f"{args}: {'array or number' if one else 'arrays or numbers that broadcast together'}."
    doc = _DOC.format(
        summary=summary,
        args=text,
        shape=f" and of the shape of `{args}`" if one else "",
        example=example_section(*example, indent="    "),
    )
    return _core.elementwise(op, "inexact", name, doc, "weft.scipy.special", None, parameters)


erf = _operation(
    "erf",
    "erf",
    "The error function.",
    example=(
        "weft.scipy.special.erf(wnp.array([0.0, 1.0, np.inf])).round(3)",
        "Array([0.   , 0.843, 1.   ], dtype=float32)",
    ),
)
erfc = _operation(
    "erfc",
    "erfc",
    "1 - erf(x), accurate for large x.",
    example=(
        "weft.scipy.special.erfc(wnp.array([0.0, 1.0, np.inf])).round(3)",
        "Array([1.   , 0.157, 0.   ], dtype=float32)",
    ),
)
expit = _operation(
    "logistic",
    "expit",
    "The logistic function, 1 / (1 + exp(-x)).",
    example=(
        "weft.scipy.special.expit(wnp.array([-np.inf, 0.0, np.inf]))",
        "Array([0. , 0.5, 1. ], dtype=float32)",
    ),
)
gammaln = _operation(
    "lgamma",
    "gammaln",
    "Logarithm of the absolute value of the gamma function; inf at its poles.",
    example=(
        "wnp.exp(weft.scipy.special.gammaln(5)).round(2)",
        "Array(24., dtype=float32, weak_type=True)",
    ),
)
digamma = _operation(
    "digamma",
    "digamma",
    "Derivative of gammaln; NaN at its poles.",
    example=(
        "weft.scipy.special.digamma(1.0).round(3)",
        "Array(-0.577, dtype=float32, weak_type=True)",
    ),
)
gammainc = _operation(
    "igamma",
    "gammainc",
    "Regularized lower incomplete gamma function of a at x.",
    ("a", "x"),
    example=(
        "weft.scipy.special.gammainc(1.0, wnp.array([0.0, 1.0, np.inf])).round(3)",
        "Array([0.   , 0.632, 1.   ], dtype=float32)",
    ),
)
gammaincc = _operation(
    "igammac",
    "gammaincc",
    "1 - gammainc(a, x), accurate for large x.",
    ("a", "x"),
    example=(
        "weft.scipy.special.gammaincc(1.0, wnp.array([0.0, 1.0, np.inf])).round(3)",
        "Array([1.   , 0.368, 0.   ], dtype=float32)",
    ),
)
betainc = _operation(
    "regularized_incomplete_beta",
    "betainc",
    "Regularized incomplete beta function with parameters a and b at x in 0..1.",
    ("a", "b", "x"),
    example=(
        "weft.scipy.special.betainc(1.0, 2.0, wnp.array([0.0, 0.5, 1.0])).round(3)",
        "Array([0.  , 0.75, 1.  ], dtype=float32)",
    ),
)
i0e = _operation(
    "bessel_i0e",
    "i0e",
    "i0(x) * exp(-|x|), which does not overflow.",
    example=(
        "weft.scipy.special.i0e(wnp.array([0.0, 1.0, 1000.0])).round(3)",
        "Array([1.   , 0.466, 0.013], dtype=float32)",
    ),
)
i1e = _operation(
    "bessel_i1e",
    "i1e",
    "i1(x) * exp(-|x|), which does not overflow.",
    example=(
        "weft.scipy.special.i1e(wnp.array([0.0, 1.0, 1000.0])).round(3)",
        "Array([0.   , 0.208, 0.013], dtype=float32)",
    ),
)
