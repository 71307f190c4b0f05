#include "daemon/pick/columns.hpp"

namespace pickd::pick {

void Candidates::compact(ColumnSet produced) {
  Arrays& arrays = *arrays_;
  std::size_t kept = 0;
  for (std::size_t at = 0; at < count; ++at) {
    if (arrays.keep[at] == 0) continue;
    if (kept != at) {
      arrays.ids[kept] = arrays.ids[at];
      arrays.lives[kept] = arrays.lives[at];
      arrays.endpoints[kept] = arrays.endpoints[at];
      arrays.match_blocks[kept] = arrays.match_blocks[at];
      for (std::size_t column = 0; column < kColumns; ++column) {
        if ((produced >> column & 1) != 0)
          arrays.columns[column][kept] = arrays.columns[column][at];
      }
    }
    ++kept;
  }
  count = kept;
}

}  // namespace pickd::pick
