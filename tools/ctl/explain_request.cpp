#include "tools/ctl/explain_request.hpp"

#include <algorithm>
#include <deque>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "libclient/pick_request.hpp"
#include "pickd/pickd.h"

namespace pickd::ctl {

namespace {

using Json = nlohmann::json;

// So many that the record fits a control message with all strings that a request may have.
constexpr std::uint32_t kKeysMax =
    (abi::kControlMessageBytesMax - client::ControlExchange::kOverheadBytes -
     sizeof(abi::PickRecord) - abi::kFieldBytesMax) /
    sizeof(std::uint64_t);

// The request and what it points to.
struct Request {
  pickd_request raw = PICKD_REQUEST_INIT;
  std::deque<std::string> texts;
  std::vector<std::uint32_t> token_ids;
  pickd_slice prompt{};
  std::vector<pickd_slice> subset;
  std::vector<pickd_attribute> attributes;

  pickd_slice keep(const std::string& text) {
    texts.push_back(text);
    return {texts.back().data(), texts.back().size()};
  }
};

// What the JSON library would cut to fit is refused.
template <typename Number>
Number whole(const Json& value) {
  using Limits = std::numeric_limits<Number>;
  const bool above = value.is_number_unsigned() &&
                     value.get<std::uint64_t>() > static_cast<std::uint64_t>(Limits::max());
  const bool below = !value.is_number_unsigned() && value.is_number_integer() &&
                     value.get<std::int64_t>() < static_cast<std::int64_t>(Limits::min());
  if (!value.is_number_integer() || above || below) {
    throw std::invalid_argument(value.dump(-1, ' ', true, Json::error_handler_t::replace) +
                                ": a whole number, " + std::to_string(Limits::min()) + " to " +
                                std::to_string(Limits::max()));
  }
  return value.get<Number>();
}

struct Key {
  const char* name;
  void (*read)(const Json& value, Request& request);
};

const Key kKeys[] = {
    {"model", [](const Json& value, Request& to) { to.raw.model = to.keep(value); }},
    {"adapter", [](const Json& value, Request& to) { to.raw.adapter = to.keep(value); }},
    {"salt", [](const Json& value, Request& to) { to.raw.salt = to.keep(value); }},
    {"prompt",
     [](const Json& value, Request& to) {
       to.prompt = to.keep(value);
       to.raw.text = &to.prompt;
       to.raw.text_count = 1;
     }},
    {"token_ids",
     [](const Json& value, Request& to) {
       if (!value.is_array()) throw std::invalid_argument("must be a list of numbers");
       for (const Json& id : value) to.token_ids.push_back(whole<std::uint32_t>(id));
       to.raw.token_ids = to.token_ids.data();
       to.raw.token_count = to.token_ids.size();
     }},
    {"prompt_tokens",
     [](const Json& value, Request& to) { to.raw.prompt_tokens = whole<std::uint32_t>(value); }},
    {"session_id", [](const Json& value, Request& to) { to.raw.session_id = to.keep(value); }},
    {"fairness_id", [](const Json& value, Request& to) { to.raw.fairness_id = to.keep(value); }},
    {"request_id", [](const Json& value, Request& to) { to.raw.request_id = to.keep(value); }},
    {"subset",
     [](const Json& value, Request& to) {
       for (const Json& entry : value) to.subset.push_back(to.keep(entry));
       to.raw.subset = to.subset.data();
       to.raw.subset_count = to.subset.size();
       to.raw.flags |= PICKD_REQUEST_SUBSET;
     }},
    {"attributes",
     [](const Json& value, Request& to) {
       for (const auto& [key, entry] : value.items())
         to.attributes.push_back({to.keep(key), to.keep(entry)});
       to.raw.attributes = to.attributes.data();
       to.raw.attribute_count = to.attributes.size();
     }},
    {"slo_ttft_ms", [](const Json& value, Request& to) { to.raw.slo_ttft_ms = value; }},
    {"slo_itl_ms", [](const Json& value, Request& to) { to.raw.slo_itl_ms = value; }},
    {"priority",
     [](const Json& value, Request& to) { to.raw.priority = whole<std::int32_t>(value); }},
    {"expected_output_tokens",
     [](const Json& value, Request& to) {
       to.raw.expected_output_tokens = whole<std::uint32_t>(value);
     }},
    {"stream",
     [](const Json& value, Request& to) {
       if (value.get<bool>()) to.raw.flags |= PICKD_REQUEST_STREAM;
     }},
};

[[noreturn]] void fail(const std::string& path, const std::string& text) {
  throw std::runtime_error(path + ": " + text);
}

Json read_json(const std::string& path) {
  try {
    if (path == "-") return Json::parse(std::cin);
    std::ifstream file(path);
    if (!file) fail(path, "cannot be read");
    return Json::parse(file);
  } catch (const Json::exception& error) {
    fail(path, std::string("no JSON: ") + error.what());
  }
}

void fill(const std::string& path, const Json& json, Request& request) {
  if (!json.is_object()) fail(path, "a request is a JSON object");
  for (const auto& entry : json.items()) {
    const std::string& name = entry.key();
    const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                   [&name](const Key& known) { return name == known.name; });
    if (key == std::end(kKeys)) {
      std::string known;
      for (const Key& each : kKeys) known += std::string(known.empty() ? "" : ", ") + each.name;
      fail(path, "unknown key `" + name + "`; known: " + known);
    }
    try {
      key->read(entry.value(), request);
    } catch (const std::exception& error) {
      fail(path, name + ": " + error.what());
    }
  }
}

}  // namespace

RequestRecord read_request(const std::string& path, const tools::ControlClient& control) {
  Request request;
  fill(path, read_json(path), request);
  request.raw.flags |= PICKD_REQUEST_DRY_RUN;
  client::LastError error;
  client::PickRequest checked;
  client::PickShape shape;
  if (checked.read(&request.raw, error) != 0 ||
      checked.shape(control.state(), std::min(control.keys_max(), kKeysMax), shape, error) != 0) {
    char text[512];
    error.copy(text, sizeof text);
    fail(path, text);
  }
  RequestRecord record;
  record.cut = shape.cut;
  record.bytes.resize(shape.bytes);
  checked.write(shape, control.state(), client::TickClock(), 0, record.bytes.data());
  return record;
}

}  // namespace pickd::ctl
