// The engines that there are, and their bodies, by the engines' addresses.
//
// An engine has no other way to its body, and nothing else says what is an engine. So a thread that
// calls an engine which another thread is destroying, or has destroyed, finds a whole body or an
// Error; a pointer in the engine would be read from memory that is freed. The table is as it should
// be in the child of a fork, too, and in a signal handler, from which programs call cancel().
#pragma once

#include <memory>

#include "api/engine_body.h"
#include "octet/engine.h"

namespace octet::api {

// A new one, without a body.
void add_engine(const Engine& engine);
// Closes its body. False: this is no engine, or no longer.
bool end_engine(const Engine& engine) noexcept;
// Gives `to` the body of `from`, and closes the one that it had. `to` may be new. If that takes
// memory and there is none, `from` is no engine any more, and can only be destroyed or moved to.
void move_engine(const Engine& from, const Engine& to) noexcept;

// Null: an engine that has nothing loaded, a new one or one that was moved from. Both throw Error
// for what is no engine, and for a body that was made before this process was forked.
std::shared_ptr<EngineBody> find_body(const Engine& engine);
std::shared_ptr<EngineBody> find_or_make_body(const Engine& engine);
void cancel_body(const Engine& engine) noexcept;

}  // namespace octet::api
