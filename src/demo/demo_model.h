// A small model with everything that Ideogram 4 has, made from random numbers: for trying the whole
// pipeline without a download. Its pictures are soft abstract shapes, by caption and seed.
#pragma once

#include <string>

namespace octet::demo {

// Makes sure that `folder` holds the demo model, laid out as a Hugging Face repository. It appears
// there whole or not at all, and one that is complete and of this revision is left alone; any
// number of processes may ask for it at once. Throws Error when the folder holds anything else.
void write_demo_model(const std::string& folder);

}  // namespace octet::demo
