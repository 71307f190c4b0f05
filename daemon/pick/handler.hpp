// Handlers choose the profiles that a request runs; deciders say whether a stage of it, prefill or
// encode, goes to an endpoint of its own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

inline constexpr std::size_t kNoProfile = ~std::size_t{0};

class Decider : public virtual Plugin {
 public:
  // `uncached_tokens`: of the prompt, at the decode endpoint that was picked.
  virtual bool split(const PickRequest& request, std::uint32_t uncached_tokens) const = 0;
};

class ProfileHandler : public virtual Plugin {
 public:
  // What a handler may refer to; indices of profiles are those of `profiles`.
  struct Links {
    std::vector<std::string_view> profiles;
    std::function<const Plugin*(std::string_view name)> plugin;  // nullptr: there is none
  };
  // Once, after everything is made. Returns what is wrong, in words; empty: nothing.
  virtual std::string bind(const Links& links) = 0;

  // The profile that gives the endpoint of the request; kNoProfile: the request names one that
  // there is not.
  virtual std::size_t primary(const PickRequest& request) const = 0;
  // The profile that gives an endpoint to encode besides; kNoProfile: none is wanted.
  virtual std::size_t encode(const PickRequest& request, std::uint32_t uncached_tokens) const {
    static_cast<void>(request);
    static_cast<void>(uncached_tokens);
    return kNoProfile;
  }
  // The profile that gives a prefill endpoint besides; kNoProfile: none is wanted.
  virtual std::size_t prefill(const PickRequest& request, std::uint32_t uncached_tokens) const {
    static_cast<void>(request);
    static_cast<void>(uncached_tokens);
    return kNoProfile;
  }
};

}  // namespace pickd::pick
