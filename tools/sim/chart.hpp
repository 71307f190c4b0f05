// A line chart as one SVG text, readable on light and dark ground.
#pragma once

#include <string>
#include <vector>

namespace pickd::sim {

struct Point {
  double x = 0;
  double y = 0;
};

struct Series {
  std::string name;
  std::vector<Point> points;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
};

std::string draw_svg(const Chart& chart);

}  // namespace pickd::sim
