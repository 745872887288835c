// Makes imported rules fit for a rule file: names that may be and that are unique, no more of
// anything than a file may have. What does not fit is dropped, and that is told.
#pragma once

#include "import/imported.h"

namespace weir::import {

void Finish(Imported& imported);

}  // namespace weir::import
