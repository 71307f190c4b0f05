// label-selector-filter: keeps endpoints whose labels fit a selector in the manner of Kubernetes:
// matchLabels (all must be equal) and matchExpressions (In, NotIn, Exists, DoesNotExist).
#include <algorithm>
#include <string>
#include <vector>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

struct Expression {
  enum class Operator : std::uint8_t { kIn, kNotIn, kExists, kDoesNotExist };
  std::string key;
  Operator op = Operator::kIn;
  std::vector<std::string> values;

  bool fits(const endpoints::TopologyEndpoint& endpoint) const {
    const std::string* value = endpoint.label(key);
    const bool listed =
        value != nullptr && std::find(values.begin(), values.end(), *value) != values.end();
    switch (op) {
      case Operator::kIn: return listed;
      case Operator::kNotIn: return !listed;
      case Operator::kExists: return value != nullptr;
      case Operator::kDoesNotExist: return value == nullptr;
    }
    return false;
  }
};

class LabelSelectorFilter final : public Filter {
 public:
  explicit LabelSelectorFilter(std::vector<Expression> expressions)
      : expressions_(std::move(expressions)) {}

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    for (std::size_t at = 0; at < keep.size(); ++at) {
      const endpoints::TopologyEndpoint& endpoint = *context.candidates.endpoints()[at];
      keep[at] =
          std::all_of(expressions_.begin(), expressions_.end(),
                      [&](const Expression& expression) { return expression.fits(endpoint); });
    }
  }

 private:
  std::vector<Expression> expressions_;
};

void read_match_labels(Parameters& parameters, std::vector<Expression>& expressions) {
  const config::Tree labels = parameters.tree("matchLabels");
  if (labels == nullptr) return;
  if (!labels->is_map()) return parameters.refuse("matchLabels", "must be a map of label to value");
  for (const config::Entry& entry : labels->entries) {
    if (!entry.value->is_scalar()) {
      parameters.refuse("matchLabels", "the value of label `" + entry.key + "` must be text");
      continue;
    }
    expressions.push_back({entry.key, Expression::Operator::kIn, {entry.value->scalar}});
  }
}

void read_expression(Parameters& parameters, const config::Node& item,
                     std::vector<Expression>& expressions) {
  const config::Node* key = item.find("key");
  const config::Node* op = item.find("operator");
  if (key == nullptr || !key->is_scalar() || op == nullptr || !op->is_scalar()) {
    return parameters.refuse("matchExpressions", "each entry needs `key` and `operator`");
  }
  for (const config::Entry& entry : item.entries) {
    if (entry.key != "key" && entry.key != "operator" && entry.key != "values") {
      return parameters.refuse(
          "matchExpressions",
          "an entry has `key`, `operator` and `values`, not `" + entry.key + "`");
    }
  }
  static constexpr std::pair<const char*, Expression::Operator> kOperators[] = {
      {"In", Expression::Operator::kIn},
      {"NotIn", Expression::Operator::kNotIn},
      {"Exists", Expression::Operator::kExists},
      {"DoesNotExist", Expression::Operator::kDoesNotExist}};
  const auto* const found =
      std::find_if(std::begin(kOperators), std::end(kOperators),
                   [&](const auto& known) { return op->scalar == known.first; });
  if (found == std::end(kOperators)) {
    return parameters.refuse("matchExpressions", "operator `" + op->scalar +
                                                     "` must be In, NotIn, Exists or DoesNotExist");
  }
  Expression expression{key->scalar, found->second, {}};
  if (const config::Node* values = item.find("values"); values != nullptr) {
    for (const config::Tree& value : values->items) {
      if (!value->is_scalar()) {
        return parameters.refuse("matchExpressions", "each of `values` must be text");
      }
      expression.values.push_back(value->scalar);
    }
  }
  const bool needs_values =
      expression.op == Expression::Operator::kIn || expression.op == Expression::Operator::kNotIn;
  if (needs_values == expression.values.empty()) {
    return parameters.refuse("matchExpressions", needs_values
                                                     ? "In and NotIn need a list of `values`"
                                                     : "Exists and DoesNotExist take no `values`");
  }
  expressions.push_back(std::move(expression));
}

std::unique_ptr<Plugin> make_label_selector_filter(Parameters& parameters) {
  std::vector<Expression> expressions;
  read_match_labels(parameters, expressions);
  const config::Tree labels = parameters.tree("matchLabels");
  const config::Tree list = parameters.tree("matchExpressions");
  if (list != nullptr) {
    if (!list->is_list()) parameters.refuse("matchExpressions", "must be a list");
    for (const config::Tree& item : list->items) read_expression(parameters, *item, expressions);
  }
  // What is given and wrong is refused already.
  const bool none_given = (labels == nullptr || (labels->is_map() && labels->entries.empty())) &&
                          (list == nullptr || (list->is_list() && list->items.empty()));
  if (none_given) {
    parameters.refuse("matchLabels",
                      "a label-selector-filter needs matchLabels or matchExpressions");
  }
  return std::make_unique<LabelSelectorFilter>(std::move(expressions));
}

}  // namespace

PluginInfo describe_label_selector_filter() {
  return {"label-selector-filter",
          PluginKind::kFilter,
          0,
          "Keeps endpoints whose labels fit a Kubernetes label selector.",
          "",
          {{"matchLabels", ParameterKind::kTree, "", 0, 0, "",
            "Map of label to value; all must be equal."},
           {"matchExpressions", ParameterKind::kTree, "", 0, 0, "",
            "List of {key, operator, values}; operator is In, NotIn, Exists or DoesNotExist."}},
          make_label_selector_filter};
}

// The Endpoint Picker's older name of the same.
PluginInfo describe_by_label_selector() {
  PluginInfo info = describe_label_selector_filter();
  info.type = "by-label-selector";
  info.summary = "The older name of label-selector-filter.";
  return info;
}

}  // namespace pickd::pick
