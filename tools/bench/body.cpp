// pickd-bench body: how fast request bodies of a megabyte become requests for a pick, in the forms
// that gateways see, beside a memchr over the same bytes, taken in turns in one run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/base/clock.hpp"
#include "pickd/body.h"
#include "tools/bench/subcommands.hpp"
#include "tools/common/samples.hpp"

namespace pickd::bench {

namespace {

struct BodyBenchOptions {
  std::uint32_t rounds = 15;
  std::uint64_t bytes = std::uint64_t{32} << 20;  // of one form, again and again, a round
  std::size_t body_bytes = std::size_t{1} << 20;
  std::size_t piece_bytes = 64 << 10;
  bool json = false;
};

struct Form {
  std::string name;
  const char* path;
  std::string text;
  tools::Samples read_us;  // a body
  tools::Samples read_gbps;
  tools::Samples probe_gbps;
};

std::string words(std::size_t bytes, std::size_t seed) {
  std::string text;
  while (text.size() < bytes) {
    text +=
        "The frame of order " + std::to_string(seed++ * 7919) + " has a warranty of five years. ";
  }
  text.resize(bytes);
  return text;
}

// What a list of items is made of until it has the wanted size.
template <typename Item>
std::string list(const std::string& before, std::size_t bytes, const std::string& behind,
                 const Item& item) {
  std::string text = before;
  for (std::size_t i = 0; text.size() < bytes; ++i)
    text += std::string(i == 0 ? "" : ", ") + item(i);
  return text + behind;
}

std::vector<Form> forms(std::size_t bytes) {
  std::vector<Form> all;
  const auto add = [&all](const char* name, const char* path, std::string text) {
    Form& form = all.emplace_back();
    form.name = name;
    form.path = path;
    form.text = std::move(text);
  };
  static constexpr char kChat[] = "/v1/chat/completions";  // forms outlive this function
  const std::string chat = R"({"model": "llama", "stream": true, "messages": [)";
  add("one prompt", kChat, chat + R"({"role": "user", "content": ")" + words(bytes, 1) + R"("}]})");
  add("100 turns", kChat, list(chat, bytes, "]}", [bytes](std::size_t i) {
        return R"({"role": ")" + std::string(i % 2 == 0 ? "user" : "assistant") +
               R"(", "content": ")" + words(bytes / 100, i) + R"("})";
      }));
  add("short turns", kChat, list(chat, bytes, "]}", [](std::size_t i) {
        return R"({"role": "user", "content": [{"type": "text", "text": ")" + words(60, i) +
               R"("}]})";
      }));
  add("escapes", kChat,
      list(chat + R"({"role": "user", "content": ")", bytes, R"("}]})",
           [](std::size_t) -> std::string { return R"(caf\u00e9 \"x\"\n\ud83d\ude00 )"; }));
  add("tools", kChat,
      list(R"({"model": "llama", "messages": [], "tools": [)", bytes, "]}", [](std::size_t i) {
        return R"({"type": "function", "function": {"name": "f)" + std::to_string(i) +
               R"(", "description": ")" + words(120, i) +
               R"(", "parameters": {"type": "object", "properties": {"sku": {"type": "string"},
               "quantity": {"type": "integer", "minimum": 1}}, "required": ["sku"]}}})";
      }));
  add("image", kChat,
      chat +
          R"({"role": "user", "content": [{"type": "image_url",
            "image_url": {"url": "data:image/png;base64,)" +
          std::string(bytes, 'A') + R"("}}]}]})");
  add("token ids", "/v1/completions",
      list(R"({"model": "llama", "prompt": [)", bytes, "]}",
           [](std::size_t i) { return std::to_string(i * 7919 % 128000); }));
  add("messages", "/v1/messages",
      list(R"({"model": "llama", "max_tokens": 64, "system": "Be brief.", "messages": [)", bytes,
           "]}", [](std::size_t i) {
             return R"({"role": "assistant", "content": [{"type": "text", "text": ")" +
                    words(400, i) +
                    R"("}, {"type": "tool_use", "id": "t", "name": "f", "input": {"sku": 4471}}]})";
           }));
  add("responses", "/v1/responses",
      list(R"({"model": "llama", "instructions": "Be brief.", "input": [)", bytes, "]}",
           [](std::size_t i) {
             return R"({"type": "message", "role": "user", "content": [{"type": "input_text",
            "text": ")" +
                    words(800, i) + R"("}]})";
           }));
  add("not JSON", kChat, words(bytes, 1));
  return all;
}

// One body, as a gateway has it. Returns the bytes of its prompt.
std::size_t read(pickd_body* body, const Form& form, std::size_t piece_bytes) {
  pickd_body_head head = PICKD_BODY_HEAD_INIT;
  head.path = {form.path, std::strlen(form.path)};
  head.body_bytes = form.text.size();
  pickd_body_begin(body, &head);
  for (std::size_t at = 0; at < form.text.size(); at += piece_bytes) {
    pickd_body_add(body, form.text.data() + at, std::min(piece_bytes, form.text.size() - at));
  }
  pickd_body_end(body);
  pickd_request request = PICKD_REQUEST_INIT;
  pickd_body_request(body, PICKD_BODY_LONGEST, &request);
  return request.text_count + request.token_count;
}

void measure(pickd_body* body, Form& form, const BodyBenchOptions& options) {
  const std::uint64_t times = std::max<std::uint64_t>(1, options.bytes / form.text.size());
  std::size_t seen = 0;
  for (std::uint32_t round = 0; round <= options.rounds; ++round) {
    std::uint64_t start = base::monotonic_ns();
    for (std::uint64_t i = 0; i < times; ++i) seen += read(body, form, options.piece_bytes);
    const auto read_ns = static_cast<double>(base::monotonic_ns() - start);
    start = base::monotonic_ns();
    for (std::uint64_t i = 0; i < times; ++i) {
      const char* text = form.text.data();
      asm volatile("" : "+r"(text) : : "memory");  // or one look would do for all
      seen += std::memchr(text, 1, form.text.size()) != nullptr ? 1 : 0;
    }
    const auto probe_ns = static_cast<double>(base::monotonic_ns() - start);
    if (round == 0) continue;  // memory is not there yet
    const double bytes = static_cast<double>(form.text.size()) * static_cast<double>(times);
    form.read_us.add(read_ns / 1000 / static_cast<double>(times));
    form.read_gbps.add(bytes / read_ns);
    form.probe_gbps.add(bytes / probe_ns);
  }
  if (seen == 0 && form.name != "not JSON")
    throw std::runtime_error("no prompt was read of \"" + form.name + "\"");
}

void run(const BodyBenchOptions& options) {
  pickd_body* made = nullptr;
  if (pickd_body_new(nullptr, &made) != 0) throw std::runtime_error("out of memory");
  const std::unique_ptr<pickd_body, void (*)(pickd_body*)> body(made, pickd_body_free);
  nlohmann::json told = nlohmann::json::array();
  if (!options.json) {
    std::printf("%zu bytes a body, in pieces of %zu; median of %u rounds\n\n", options.body_bytes,
                options.piece_bytes, options.rounds);
    std::printf("%-12s %10s %10s %8s %14s %8s\n", "form", "us", "p99 us", "GB/s", "memchr GB/s",
                "ratio");
  }
  for (Form& form : forms(options.body_bytes)) {
    measure(body.get(), form, options);
    const double gbps = form.read_gbps.percentile(0.5), probe = form.probe_gbps.percentile(0.5);
    if (options.json) {
      told.push_back({{"form", form.name},
                      {"bytes", form.text.size()},
                      {"us", form.read_us.percentile(0.5)},
                      {"us_p99", form.read_us.percentile(0.99)},
                      {"gbps", gbps},
                      {"memchr_gbps", probe}});
    } else {
      std::printf("%-12s %10.1f %10.1f %8.2f %14.2f %8.3f\n", form.name.c_str(),
                  form.read_us.percentile(0.5), form.read_us.percentile(0.99), gbps, probe,
                  gbps / probe);
    }
  }
  if (options.json) std::printf("%s\n", told.dump(2).c_str());
}

}  // namespace

void add_body(CLI::App& app) {
  auto options = std::make_shared<BodyBenchOptions>();
  app.add_option("--rounds", options->rounds, "Rounds of each form")->check(CLI::Range(1U, 1000U));
  app.add_option("--body-bytes", options->body_bytes, "Bytes of a body")
      ->check(CLI::Range(std::size_t{1000}, std::size_t{32} << 20));
  app.add_option("--piece-bytes", options->piece_bytes, "Bytes of a piece of it")
      ->check(CLI::Range(std::size_t{1}, std::size_t{32} << 20));
  app.add_flag("--json", options->json, "Figures as JSON");
  app.callback([options] { run(*options); });
}

}  // namespace pickd::bench
