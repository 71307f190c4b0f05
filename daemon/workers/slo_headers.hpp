// The latency that a request wants: by its own fields, or by headers among its attributes, in the
// names that gateways of the Endpoint Picker send.
//
// Values come from callers of the gateway and are believed in nothing: what is no time of a request
// is read as none and counted, never as the most urgent.
#pragma once

#include <cstdint>
#include <string_view>

#include "daemon/pick/request.hpp"

namespace pickd::workers {

// An SLO in milliseconds as it counts: a number of up to one day, else 0 and `*ignored` rises.
float checked_slo_ms(float slo_ms, std::uint32_t* ignored);

// The same from a header's text: a decimal number, spaces around it allowed, nothing else.
float parse_slo_ms(std::string_view text, std::uint32_t* ignored);

// Checks the SLOs that the request says itself; where it says none, its attributes may:
//   slo_ttft_ms  x-llm-d-slo-ttft-ms, x-slo-ttft-ms
//   slo_itl_ms   x-llm-d-slo-itl-ms, x-slo-itl-ms, x-llm-d-slo-tpot-ms, x-slo-tpot-ms
//   predict      false with x-prediction-based-scheduling-off (unless "false" or "0"), or with
//                x-prediction-based-scheduling "false" or "0"
// The first name that is there counts; one that stands twice with different values is none.
void read_slos(pick::PickRequest& request, std::uint32_t* ignored);

}  // namespace pickd::workers
