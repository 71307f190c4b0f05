#include "tools/sim/chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace pickd::sim {

namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 480;
constexpr double kLeft = 80;
constexpr double kRight = 320;
constexpr double kTop = 50;
constexpr double kBottom = 60;
// Told apart by those who do not tell red from green.
constexpr const char* kColours[] = {"#0072B2", "#E69F00", "#009E73", "#D55E00",
                                    "#CC79A7", "#56B4E9", "#8C8C8C", "#B8A800"};

std::string format(const char* pattern, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

// The round number at or above a span over four.
double step_of(double span) {
  const double raw = span / 4;
  const double magnitude = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (raw <= factor * magnitude) return factor * magnitude;
  }
  return 10 * magnitude;
}

struct Frame {
  double x_from = 0;
  double x_to = 1;
  double y_to = 1;

  double x(double value) const {
    return kLeft + (value - x_from) / (x_to - x_from) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom - value / y_to * (kHeight - kTop - kBottom);
  }
};

Frame frame_of(const Chart& chart) {
  Frame frame{1e300, -1e300, 0};
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      frame.x_from = std::min(frame.x_from, point.x);
      frame.x_to = std::max(frame.x_to, point.x);
      frame.y_to = std::max(frame.y_to, point.y);
    }
  }
  if (!(frame.x_from < frame.x_to)) {
    frame.x_from = std::min(frame.x_from, 1e300) - .5;
    frame.x_to = frame.x_from + 1;
  }
  if (!(frame.y_to > 0)) frame.y_to = 1;
  const double step = step_of(frame.y_to);
  frame.y_to = std::ceil(frame.y_to / step) * step;
  return frame;
}

void draw_axes(const Chart& chart, const Frame& frame, std::string& svg) {
  const double step = step_of(frame.y_to);
  for (double value = 0; value <= frame.y_to * 1.0001; value += step) {
    svg += format("<line class='grid' x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f'/>\n", kLeft,
                  kWidth - kRight, frame.y(value), frame.y(value));
    svg += format("<text x='%.1f' y='%.1f' text-anchor='end'>%g</text>\n", kLeft - 8,
                  frame.y(value) + 4, value);
  }
  std::vector<double> marks;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) marks.push_back(point.x);
  }
  std::sort(marks.begin(), marks.end());
  marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
  for (const double mark : marks) {
    svg += format("<text x='%.1f' y='%.1f' text-anchor='middle'>%g</text>\n", frame.x(mark),
                  kHeight - kBottom + 20, mark);
  }
  svg += format("<text x='%.1f' y='%.1f' text-anchor='middle'>%s</text>\n",
                (kLeft + kWidth - kRight) / 2, kHeight - 16, escaped(chart.x_label).c_str());
  svg += format("<text transform='translate(20 %.1f) rotate(-90)' text-anchor='middle'>%s</text>\n",
                (kTop + kHeight - kBottom) / 2, escaped(chart.y_label).c_str());
}

}  // namespace

std::string draw_svg(const Chart& chart) {
  const Frame frame = frame_of(chart);
  std::string svg = format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' width='%.0f' "
      "height='%.0f'>\n",
      kWidth, kHeight, kWidth, kHeight);
  svg +=
      "<style>svg{background:#fff}text{font:13px sans-serif;fill:#222}.grid{stroke:#ddd}"
      ".title{font-size:17px;font-weight:600}\n"
      "@media(prefers-color-scheme:dark){svg{background:#16181d}text{fill:#ddd}"
      ".grid{stroke:#3a3d44}}</style>\n";
  svg += format("<text class='title' x='%.1f' y='28'>%s</text>\n", kLeft,
                escaped(chart.title).c_str());
  draw_axes(chart, frame, svg);
  for (std::size_t at = 0; at < chart.series.size(); ++at) {
    const Series& series = chart.series[at];
    const char* colour = kColours[at % std::size(kColours)];
    std::string path;
    for (const Point& point : series.points) {
      path += format("%s%.1f,%.1f", path.empty() ? "M" : " L", frame.x(point.x), frame.y(point.y));
      svg += format("<circle cx='%.1f' cy='%.1f' r='4' fill='%s'/>\n", frame.x(point.x),
                    frame.y(point.y), colour);
    }
    svg +=
        format("<path d='%s' fill='none' stroke='%s' stroke-width='2.5'/>\n", path.c_str(), colour);
    const double y = kTop + 12 + 24 * static_cast<double>(at);
    svg += format("<rect x='%.1f' y='%.1f' width='14' height='14' fill='%s'/>\n",
                  kWidth - kRight + 20, y - 11, colour);
    svg += format("<text x='%.1f' y='%.1f'>%s</text>\n", kWidth - kRight + 42, y,
                  escaped(series.name).c_str());
  }
  return svg + "</svg>\n";
}

}  // namespace pickd::sim
