// A table of text whose columns are as wide as what stands in them.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace pickd::ctl {

class Table {
 public:
  enum Align : bool { kLeft, kRight };

  explicit Table(std::initializer_list<const char*> heads) {
    for (const char* text : heads) head(text, kLeft);
  }
  void head(const std::string& text, Align align) {
    columns_.push_back({text, align, text.size()});
  }

  // May have fewer cells than there are columns; the last then reaches as far as it likes.
  void row(std::vector<std::string> cells) {
    const bool whole = cells.size() >= columns_.size();
    for (std::size_t at = 0; at + (whole ? 0 : 1) < cells.size() && at < columns_.size(); ++at)
      columns_[at].width = std::max(columns_[at].width, columns_of(cells[at]));
    rows_.push_back(std::move(cells));
  }

  void print() const {
    std::vector<std::string> heads;
    for (const Column& column : columns_) heads.push_back(column.head);
    print(heads);
    for (const auto& cells : rows_) print(cells);
  }

 private:
  struct Column {
    std::string head;
    Align align;
    std::size_t width;
  };

  // Of a terminal: what follows the first byte of a letter of UTF-8 takes none.
  static std::size_t columns_of(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char letter) {
      return (static_cast<unsigned char>(letter) & 0xC0) != 0x80;
    }));
  }

  void print(const std::vector<std::string>& cells) const {
    std::string line;
    for (std::size_t at = 0; at < cells.size(); ++at) {
      if (at != 0) line += "  ";
      const bool beyond = at + 1 == cells.size() && cells.size() < columns_.size();
      const std::size_t width = beyond || at >= columns_.size() ? 0 : columns_[at].width;
      const std::size_t is = columns_of(cells[at]);
      const std::string fill(width > is ? width - is : 0, ' ');
      const bool right = !beyond && at < columns_.size() && columns_[at].align == kRight;
      line += right ? fill + cells[at] : cells[at] + fill;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pickd::ctl
