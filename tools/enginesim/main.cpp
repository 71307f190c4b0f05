// enginesim: a vLLM-like inference engine over HTTP that computes nothing and takes as long as if
// it did.
#include <CLI/CLI.hpp>

#include <cstdio>

#include "tools/common/numbers.hpp"
#include "tools/enginesim/server.hpp"

using namespace pickd;

int main(int argc, char** argv) {
  enginesim::ServerOptions options;
  std::string model = "demo";
  std::vector<std::string> adapters;

  CLI::App app{
      "A vLLM-like inference engine over HTTP: real scheduling and KV cache, simulated compute.\n"
      "Prints \"listening on PORT\" when it is ready. Four bytes of text are one token."};
  app.option_defaults()->always_capture_default();
  app.add_option("--host", options.host, "IPv4 address to listen on");
  app.add_option("--port", options.port, "port to listen on; 0: any free one");
  app.add_option("--model", model, "name of the model served");
  app.add_option("--adapters", adapters, "names of LoRA adapters served as models too")
      ->delimiter(',');

  enginesim::EngineOptions& engine = options.engine;
  const auto positive = CLI::Range(1U, 1U << 30);
  app.add_option("--max-loras", engine.adapters_max, "adapters that run at once")->check(positive);
  app.add_option("--blocks", engine.blocks, "KV cache in blocks")->check(positive);
  app.add_option("--block-size", engine.block_tokens, "tokens in a block")
      ->check(CLI::Range(1U, 65536U));
  app.add_option("--max-num-seqs", engine.sequences_max, "sequences in a step")->check(positive);
  app.add_option("--max-num-batched-tokens", engine.batched_tokens_max, "tokens computed in a step")
      ->check(positive);
  app.add_option("--mean-output-tokens", options.answer_tokens_mean,
                 "mean length of answers that end by themselves")
      ->check(CLI::Range(1.0, 1e6));

  enginesim::StepRates& rates = engine.rates;
  const auto seconds = CLI::Range(0.0, 1000.0);
  app.add_option("--step-seconds", rates.step_s, "a step without work")->check(seconds);
  app.add_option("--prefill-seconds", rates.prefill_s, "per prompt token computed")->check(seconds);
  app.add_option("--attention-seconds", rates.attention_s, "per prompt token and token before it")
      ->check(seconds);
  app.add_option("--decode-sequence-seconds", rates.decode_sequence_s, "per sequence that decodes")
      ->check(seconds);
  app.add_option("--decode-token-seconds", rates.decode_token_s, "per KV token of those sequences")
      ->check(seconds);
  app.add_option("--time-factor", rates.time_factor, "how many times faster everything goes")
      ->check(CLI::Range(1e-3, 1e3));
  app.add_option("--step-noise", rates.noise,
                 "standard deviation of the logarithm of a step's duration")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", engine.seed, "seed of the noise");
  pickd::tools::read_numbers_strictly(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  if (rates.step_s <= 0) {  // steps without duration would be a busy loop
    std::fprintf(stderr, "enginesim: --step-seconds must be above 0\n");
    return 2;
  }
  options.names.push_back(model);
  options.names.insert(options.names.end(), adapters.begin(), adapters.end());

  const auto server = enginesim::Server::make(options);
  if (!server) {
    std::fprintf(stderr, "enginesim: %s\n", server.error().text.c_str());
    return 1;
  }
  std::printf("listening on %u\n", static_cast<unsigned>(server.value()->port()));
  std::fflush(stdout);
  if (const auto ended = server.value()->run(); !ended) {
    std::fprintf(stderr, "enginesim: %s\n", ended.error().text.c_str());
    return 1;
  }
  return 0;
}
