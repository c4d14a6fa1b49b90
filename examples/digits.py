"""Reads handwritten digits: ridge regression on random features, fitted and run by weft.

The model is linear in cos(x W + b), random features of a Gaussian kernel. Fitting it means solving
(F'F + penalty) A = F'Y for all ten classes at once; that is done by conjugate gradients, whose
steps are one compiled program. Prints what `predict` compiles to, the accuracy on digits that the
fit has not seen, and the time against the same program in NumPy.

usage: digits.py
"""

import time

import numpy as np
from sklearn.datasets import load_digits

import weft
import weft.numpy as wnp

FEATURES = 512
PENALTY = 0.1
STEPS = 60
SEED = 0


def features(xp, params, x):
    return xp.cos(x @ params["w"] + params["b"])


def scores(xp, params, x):
    return features(xp, params, x) @ params["a"]


@weft.jit
def predict(params, x):
    """The most likely digit of each row of pixels."""
    return wnp.argmax(scores(wnp, params, x), axis=1)


def fit(xp, gram_step, params, x, onehot):
    """Conjugate gradients on all columns of A at once."""
    f = features(xp, params, x)
    gram = f.T @ f + PENALTY * xp.eye(FEATURES, dtype="float32")
    residual = f.T @ onehot
    state = (xp.zeros_like(residual), residual, residual, xp.sum(residual * residual, axis=0))
    for _ in range(STEPS):
        state = gram_step(gram, state)
    return {**params, "a": state[0]}


def gram_step(xp, gram, state):
    a, residual, direction, norm = state
    image = gram @ direction
    step = norm / xp.maximum(xp.sum(direction * image, axis=0), 1e-30)
    a = a + step * direction
    residual = residual - step * image
    new_norm = xp.sum(residual * residual, axis=0)
    direction = residual + new_norm / xp.maximum(norm, 1e-30) * direction
    return a, residual, direction, new_norm


def data():
    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.target))
    x = (digits.data[order] / 16.0).astype(np.float32)
    y = digits.target[order].astype(np.int32)
    cut = len(y) * 3 // 4
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def random_features():
    rng = np.random.default_rng(SEED)
    w = 0.4 * rng.standard_normal((64, FEATURES))
    b = rng.uniform(0, 2 * np.pi, FEATURES)
    return {"w": w.astype(np.float32), "b": b.astype(np.float32)}


def best_time(f, repeats=20):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main():
    (x, y), (x_test, y_test) = data()
    start = random_features()
    onehot = np.eye(10, dtype=np.float32)[y]

    step = weft.jit(lambda gram, state: gram_step(wnp, gram, state))
    weft_fit = weft.jit(lambda params, x, onehot: fit(wnp, step, params, x, onehot))
    clock = time.perf_counter()
    params = weft.block_until_ready(weft_fit(start, x, onehot))
    compile_and_fit = time.perf_counter() - clock

    print("predict as a graph")
    print(predict.trace(params, x_test).graph)
    print("\npredict as StableHLO")
    print(predict.lower(params, x_test).as_text())

    accuracy = float(np.mean(np.asarray(predict(params, x_test)) == y_test))
    print(
        f"\n{len(y)} digits to fit, {len(y_test)} held out; compile and fit {compile_and_fit:.2f} s"
    )
    print(f"accuracy on held-out digits: {accuracy:.4f}")

    numpy_step = lambda gram, state: gram_step(np, gram, state)
    numpy_params = fit(np, numpy_step, start, x, onehot)
    numpy_guess = np.argmax(scores(np, numpy_params, x_test), axis=1)
    print(f"accuracy of the same fit in NumPy: {np.mean(numpy_guess == y_test):.4f}")

    device = weft.device_put((params, x_test, start, x, onehot))
    params, x_test, start, x, onehot = device
    on_host = weft.device_get(device)
    rows = [
        (
            "fit",
            lambda: weft.block_until_ready(weft_fit(start, x, onehot)),
            lambda: fit(np, numpy_step, *on_host[2:]),
        ),
        (
            "predict",
            lambda: weft.block_until_ready(predict(params, x_test)),
            lambda: np.argmax(scores(np, *on_host[:2]), axis=1),
        ),
    ]
    print(f"\n{'':10}{'weft':>10}{'NumPy':>10}")
    for name, ours, theirs in rows:
        print(f"{name:10}{best_time(ours):8.2f}ms{best_time(theirs):8.2f}ms")
    if accuracy <= 0.9:
        raise SystemExit("the accuracy is not above 0.9")


if __name__ == "__main__":
    main()
