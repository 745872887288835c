// Paths and queries of a request, as rules want to see them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::codec::http {

// The path as a server behind us would understand it, so that no spelling escapes a rule:
//   - escapes are decoded, but %2F and %25 stay, for "a%2Fb" is one segment, and so do control
//     bytes; hexadecimal digits that stay are in upper case
//   - "." and ".." segments are resolved, also where their dots were escaped
//   - "//" counts as "/"
// Nothing, if an escape is not %XX, a byte is NUL, ".." climbs above the root, or the path does not
// begin with '/'. A path that is well already is returned as it is; others are written to
// `storage`.
[[nodiscard]] std::optional<std::string_view> NormalizePath(std::string_view path,
                                                            std::string& storage);

// One after the other the parameters of a query, decoded: %XX, and '+' for a blank. An escape that
// is none stays as it is.
class QueryReader {
 public:
  struct Parameter {
    std::string_view name;
    std::string_view value;
  };

  // What is decoded is kept in `storage`, which must live as long as the parameters are used.
  QueryReader(std::string_view query, std::string& storage);

  [[nodiscard]] std::optional<Parameter> Next();

 private:
  [[nodiscard]] std::string_view Decode(std::string_view text);

  std::string_view rest_;
  std::string& storage_;
};

}  // namespace weir::codec::http
