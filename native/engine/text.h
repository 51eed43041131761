// Text of a file that people are shown: labels, names, the network's settings. It must be harmless wherever it is
// printed, so that no program has to think of it.
#pragma once
#include <string>

#include "engine/json.h"
#include "engine/limits.h"

namespace ebnet {

// Valid UTF-8 (as the JSON reader leaves it) of at most `longest` bytes, without control characters, line separators or
// marks that turn the direction of writing. Throws TextUnprintable or FieldOutOfRange.
void require_plain(const std::string& text, std::size_t longest, const std::string& where);

// The settings of the network that was packed: names with a number, a truth, a text, nothing, or a list of these. None
// is needed to run it, and what the program says too must agree with it.
void require_settings(const json::Value& network, const Limits& limits);

}  // namespace ebnet
