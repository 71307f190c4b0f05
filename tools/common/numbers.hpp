// Numbers of the command line, strictly. Knows no program's options.
#pragma once

namespace CLI {
class App;
}

namespace pickd::tools {

// To be called when all options of `app` and its subcommands are there: those that take a whole
// number without a sign refuse what CLI11 makes one of by itself: -1 and what is over 64 bits
// become the largest there is, and 010 becomes 8. Others refuse NaN.
void read_numbers_strictly(CLI::App& app);

}  // namespace pickd::tools
