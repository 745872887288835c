// What systemd hands over and wants to hear: sockets that it opened for us, and how we are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::server {

// The listening sockets whose unit names them so (FileDescriptorName=http, or grpc-tls and
// grpc-mtls for TLS); none without systemd. A socket without a name, or with that of its unit,
// counts as http.
[[nodiscard]] std::vector<int> InheritedSockets(std::string_view name);

// "READY=1", "RELOADING=1", "STOPPING=1"; nothing without systemd.
void NotifySystemd(std::string_view state);

}  // namespace weir::server
