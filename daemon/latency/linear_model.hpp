// LinearModel: non-negative least squares that forgets, fed a sample at a time.
//
//   G = lambda G + w x x',  g = lambda g + w x y
//   theta = argmin_{theta >= 0} theta'G theta/2 - g'theta + |theta - z theta0|^2/2
//   z = EW sum(w y) / EW sum(w theta0'x)
//
// The prior theta0 gives the ratios, the data the scale z. No coefficient is negative, so that
// nothing predicted falls with load. A sample that is not finite, not positive or absurd is
// refused. One thread; reads no clock.
#pragma once

#include <Eigen/Core>
#include <array>
#include <cmath>
#include <cstdint>

namespace pickd::latency {

inline constexpr double kSampleDecay = .998;           // lambda, a sample; by default
inline constexpr std::uint64_t kSamplesEachFit = 200;  // up to here every sample refits
inline constexpr std::uint64_t kFitEvery = 8;          // after it every 8th
inline constexpr int kSweeps = 30;
inline constexpr double kThetaMax = 1e6;  // seconds for a scaled unit: no engine that serves

template <std::size_t N>
class LinearModel {
 public:
  using Vector = std::array<double, N>;

  // What is kept over a restart: plain numbers.
  struct Memory {
    double gram[N * N];
    double moment[N];
    double theta[N];
    double measured;
    double expected;
    double samples;
  };

  explicit LinearModel(const Vector& prior, double decay = kSampleDecay)
      : prior_(map(prior)), theta_(prior_), decay_(decay) {}

  double predict(const Vector& x) const { return theta_.dot(map(x)); }
  const Vector& theta() const { return published_; }
  std::uint64_t samples() const { return samples_; }

  // False: refused, nothing changed.
  bool add(const Vector& x, double y, double weight) {
    if (!sound(x, y, weight)) return false;
    const Column features = map(x);
    gram_ = decay_ * gram_ + weight * features * features.transpose();
    moment_ = decay_ * moment_ + weight * y * features;
    measured_ = decay_ * measured_ + weight * y;
    expected_ = decay_ * expected_ + weight * prior_.dot(features);
    ++samples_;
    if (samples_ <= kSamplesEachFit || samples_ % kFitEvery == 0) fit();
    return true;
  }

  Memory memory() const {
    Memory kept{};
    Eigen::Map<Matrix>(kept.gram) = gram_;
    Eigen::Map<Column>(kept.moment) = moment_;
    Eigen::Map<Column>(kept.theta) = theta_;
    kept.measured = measured_;
    kept.expected = expected_;
    kept.samples = static_cast<double>(samples_);
    return kept;
  }
  // False: the numbers are not sound, nothing changed.
  bool restore(const Memory& kept) {
    for (const double value : kept.gram) {
      if (!std::isfinite(value)) return false;
    }
    for (std::size_t i = 0; i < N; ++i) {
      if (!std::isfinite(kept.moment[i]) || !std::isfinite(kept.theta[i]) || kept.theta[i] < 0 ||
          kept.gram[i * N + i] < 0) {
        return false;
      }
    }
    for (const double value : kept.theta) {
      if (value > kThetaMax) return false;
    }
    const bool counts = std::isfinite(kept.measured) && std::isfinite(kept.expected) &&
                        kept.measured >= 0 && kept.expected >= 0 && kept.samples >= 0 &&
                        kept.samples < 1e15;
    if (!counts) return false;
    gram_ = Eigen::Map<const Matrix>(kept.gram);
    moment_ = Eigen::Map<const Column>(kept.moment);
    theta_ = Eigen::Map<const Column>(kept.theta);
    measured_ = kept.measured;
    expected_ = kept.expected;
    samples_ = static_cast<std::uint64_t>(kept.samples);
    publish();
    return true;
  }

 private:
  using Matrix = Eigen::Matrix<double, static_cast<int>(N), static_cast<int>(N)>;
  using Column = Eigen::Matrix<double, static_cast<int>(N), 1>;

  static Column map(const Vector& x) { return Eigen::Map<const Column>(x.data()); }

  static bool sound(const Vector& x, double y, double weight) {
    if (!std::isfinite(y) || y <= 0 || !std::isfinite(weight) || weight <= 0) return false;
    for (const double value : x) {
      if (!std::isfinite(value) || value < 0 || value > 1e9) return false;
    }
    return true;
  }

  void fit() {
    constexpr double kRidge = 1;
    const double scale = expected_ > 0 ? measured_ / expected_ : 1;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (int j = 0; j < static_cast<int>(N); ++j) {
        const double others = gram_.row(j).dot(theta_) - gram_(j, j) * theta_(j);
        const double wanted = moment_(j) - others + kRidge * scale * prior_(j);
        theta_(j) = std::max(0.0, wanted / (gram_(j, j) + kRidge));
      }
    }
    publish();
  }

  void publish() {
    for (std::size_t i = 0; i < N; ++i) published_[i] = theta_(static_cast<int>(i));
  }

  Column prior_;
  Column theta_;
  double decay_;
  Matrix gram_ = Matrix::Zero();
  Column moment_ = Column::Zero();
  double measured_ = 0;
  double expected_ = 0;
  std::uint64_t samples_ = 0;
  Vector published_ = to_array(theta_);

  static Vector to_array(const Column& column) {
    Vector values{};
    for (std::size_t i = 0; i < N; ++i) values[i] = column(static_cast<int>(i));
    return values;
  }
};

}  // namespace pickd::latency
