// What another program's names for things known of a request are called in our rules.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "import/imported.h"

namespace weir::import {

class AttributeNames {
 public:
  // `given`: the user's own choice, which wins. `known`: the format's.
  AttributeNames(std::map<std::string, std::string> given, std::map<std::string, std::string> known)
      : given_(std::move(given)), known_(std::move(known)) {}

  // A name that a rule may use; the same one for the same name. What is called otherwise here is
  // told once.
  std::string Of(const std::string& name, const Place& place, Imported& imported);

 private:
  std::string Choose(const std::string& name) const;

  std::map<std::string, std::string> given_;
  std::map<std::string, std::string> known_;
  std::map<std::string, std::string> chosen_;
  std::map<std::string, std::string> used_;  // by attribute: whose it is
};

}  // namespace weir::import
