// The facts of several pages as those of one engine: its data-parallel ranks have a metrics page
// each, and one endpoint stands for all of them. Pure; knows neither pages nor requests.
//
// What one rank does not tell is unknown of the whole: a part must never stand for the sum.
#pragma once

#include <vector>

#include "daemon/endpoints/engine_facts.hpp"

namespace pickd::scrape {

// Waiting, running and blocks are summed; KV use is averaged over the ranks, and the largest kept;
// adapters are those of any rank, room for them that of the rank with the least. A block size on
// which the ranks do not agree is unknown. One page alone is given back as it is; none: no facts.
endpoints::EngineFacts join_facts(std::vector<endpoints::EngineFacts> pages);

}  // namespace pickd::scrape
