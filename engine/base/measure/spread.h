// The median and the quartiles of repeated measurements.
#pragma once

#include <vector>

namespace engine {

/// Median and quartiles.
struct Spread {
  double q1 = 0, median = 0, q3 = 0;
  int n = 0;  // number of values; 0: the others are undefined
};

/// Computes them by linear interpolation between the sorted values: quantile p is at index
/// p * (n - 1), as in numpy.percentile.
Spread spread_of(std::vector<double> values);

}  // namespace engine
