// Names in one word what proposed an emitted token, for results and tables.
#pragma once

#include <string>
#include <string_view>

#include "engine/event/event.h"

namespace engine {

/// The tag of a guessed row that was copied from a text.
RowTag copied_tag(GuessSource::Kind kind, int depth);
/// The kind of text that copied_tag() names; None for other tags.
GuessSource::Kind copied_kind(const RowTag& tag);
/// "prompt", "text", "earlier" or "file"; "pool" for None.
std::string word_of(GuessSource::Kind kind);

/// "accepted", "bonus", "plain" or "approximate": the value of a table, and a class of the page.
const char* name_of(TokenStatus status);

/// "none"    the target's own token of a step without proposals
/// "bonus"   the target's own token after the accepted proposals, if any
/// Otherwise the token is an accepted proposal of
///   "draft"   a draft model
///   "head N"  draft head N, from 1
///   "pool"    the n-gram pool
///   "successors"  the table of successors (recycling)
///   "prompt"  prompt lookup; with suffix: a copy from the prompt
///   "text", "earlier", "file"  a copy from the text so far, an earlier run's text or a file
///   "guess"   a block or window that is refined in each step (jacobi, fastcot)
std::string drafted_by(std::string_view decoder, TokenStatus status, const RowTag& origin);

}  // namespace engine
