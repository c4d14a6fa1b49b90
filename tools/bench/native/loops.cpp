// Two programs of loop_programs.py as one would write them by hand, for `loops.py --native`: how
// far a compiled program is from plain C++.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace {

template <std::size_t Rows, std::size_t Columns>
using Matrix = std::array<std::array<float, Columns>, Rows>;

template <std::size_t N, std::size_t K, std::size_t M>
Matrix<N, M> product(const Matrix<N, K>& a, const Matrix<K, M>& b) {
  Matrix<N, M> c{};
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t k = 0; k < K; ++k)
      for (std::size_t j = 0; j < M; ++j) c[i][j] += a[i][k] * b[k][j];
  return c;
}

template <std::size_t N, std::size_t M>
Matrix<M, N> transposed(const Matrix<N, M>& a) {
  Matrix<M, N> b;
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j < M; ++j) b[j][i] = a[i][j];
  return b;
}

}  // namespace

// The log-likelihood of `steps` pairs of observations; `moves` is a 4x4 matrix, row by row.
extern "C" float kalman(const float* moves, const float* seen, std::int64_t steps) {
  Matrix<4, 4> a, cov{};
  Matrix<4, 1> mean{};
  Matrix<2, 4> sees{};
  for (int i = 0; i < 16; ++i) a[i / 4][i % 4] = moves[i];
  for (int i = 0; i < 4; ++i) cov[i][i] = 1;
  for (int i = 0; i < 2; ++i) sees[i][i] = 1;
  const auto back = transposed(a);
  const auto sees_back = transposed(sees);
  float cost = 0;
  for (std::int64_t t = 0; t < steps; ++t) {
    mean = product(a, mean);
    cov = product(product(a, cov), back);
    for (int i = 0; i < 4; ++i) cov[i][i] += 0.01F;
    auto s = product(product(sees, cov), sees_back);
    for (int i = 0; i < 2; ++i) s[i][i] += 0.1F;
    const float det = s[0][0] * s[1][1] - s[0][1] * s[1][0];
    const Matrix<2, 2> inverse{{{s[1][1] / det, -s[0][1] / det}, {-s[1][0] / det, s[0][0] / det}}};
    const auto gain = product(product(cov, sees_back), inverse);
    auto miss = product(sees, mean);
    for (int i = 0; i < 2; ++i) miss[i][0] = seen[2 * t + i] - miss[i][0];
    const auto moved = product(gain, miss);
    for (int i = 0; i < 4; ++i) mean[i][0] += moved[i][0];
    const auto less = product(product(gain, sees), cov);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) cov[i][j] -= less[i][j];
    cost += product(product(transposed(miss), inverse), miss)[0][0];
  }
  return cost;
}

// The sum of `count` numbers (at most 64) after so many steps.
extern "C" float scalar_carries(const float* start, std::int64_t count, std::int64_t steps) {
  std::array<float, 64> x{}, next{};
  for (std::int64_t i = 0; i < count; ++i) x[i] = start[i];
  for (std::int64_t t = 0; t < steps; ++t) {
    for (std::int64_t i = 0; i < count; ++i)
      next[i] = 0.999F * x[i] + 0.001F * std::sin(x[i + 1 < count ? i + 1 : 0]);
    x = next;
  }
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}
