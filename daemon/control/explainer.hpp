// The explainer: finds picks that workers wrote down, and runs a pick dry for its explanation.
//
// On the control thread, with a scratch, a counter row and a reader's slot of its own: the dry run
// is the workers' own code over the same published state, and leaves nothing behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "abi/limits.hpp"
#include "abi/state_layout.hpp"
#include "daemon/base/result.hpp"
#include "daemon/control/engine_room.hpp"
#include "daemon/endpoints/reservations.hpp"
#include "daemon/pick/explanation.hpp"

namespace pickd::control {

class Explainer {
 public:
  // Explanations of one user are not for another; nothing: for all.
  using Viewer = std::optional<std::uint32_t>;

  explicit Explainer(EngineRoom& room);
  ~Explainer();

  // Of the pick with this ticket; nothing: of the newest. nullptr: it is not kept, or not for
  // `viewer`, which must not be told apart.
  std::unique_ptr<const pick::Explanation> kept(const std::optional<endpoints::Ticket>& ticket,
                                                Viewer viewer) const;

  // Of the newest `count` picks of all users, newest first.
  std::vector<std::unique_ptr<const pick::Explanation>> recent(std::size_t count) const;

  // Of a kPick record as clients submit it. -EINVAL when it breaks the layout, and -EAGAIN when its
  // user is over a limit.
  base::Result<std::unique_ptr<const pick::Explanation>> dry_run(std::span<const std::byte> record,
                                                                 std::uint32_t uid,
                                                                 workers::UserRates& rates);

 private:
  struct DryRun;  // made when the first one is asked for: it is large

  EngineRoom& room_;
  std::unique_ptr<DryRun> dry_;
};

}  // namespace pickd::control
