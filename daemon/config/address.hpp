// Addresses of endpoints: what one must look like, whoever tells it: the file, discovery, a client.
// Pure; knows nothing of names and networks.
#pragma once

#include <string>

namespace pickd::config {

// What is wrong with an address; empty when nothing is. Loose on purpose: the gateway dials it, not
// pickd.
std::string address_mistake(const std::string& address);

// Likewise of a metrics URL; an empty one stands for the address. Stricter: pickd reads it.
std::string metrics_url_mistake(const std::string& url);

}  // namespace pickd::config
