// The bodies of all engines, by the engines' addresses.
//
// An engine has no other way to its body. So a thread that calls an engine which another thread is
// destroying, or has destroyed, finds a whole body or none, and gets an Error; a pointer in the
// engine would be read from memory that is freed. The table is as it should be in the child of a
// fork, too, and in a signal handler, from which programs call cancel().
#pragma once

#include <memory>

#include "api/engine_body.h"
#include "octet/engine.h"

namespace octet::api {

// Null: an engine without a body, which has nothing loaded: a new one, one that was moved from, or
// none at all. Throws Error for a body that was made before this process was forked.
std::shared_ptr<EngineBody> find_body(const Engine& engine);
std::shared_ptr<EngineBody> find_or_make_body(const Engine& engine);
void cancel_body(const Engine& engine) noexcept;

void move_body(const Engine& from, const Engine& to) noexcept;  // `to` has none
// Closes it.
void end_body(const Engine& engine) noexcept;

}  // namespace octet::api
