// Pictures of several captions, by a model that is loaded once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caption_flags.h"
#include "flags.h"
#include "octet/tools/report.h"
#include "picture_paths.h"

namespace octet::cli {

// Captions that stand and fall together. Throws Error for one that cannot be read.
std::vector<CaptionText> texts_of(const Captions& captions);

// "2/8 poster: ", for the progress of a list; empty for a single caption.
std::string title_of(const Captions& captions, size_t caption);

// One picture more.
void add_picture(RenderedCaption& caption, const std::string& path, const Picture& picture);

// Renders them, and prints the names of the pictures of each as soon as they are written. What is
// wrong with a caption is said at once, and leaves the others alone; other errors end the work.
// `callbacks` are those that progress and pictures are not told by.
std::vector<RenderedCaption> render_list(const CommonFlags& flags, const GenerateRequest& request,
                                         const std::vector<NamedCaption>& captions,
                                         const PicturePaths& paths,
                                         const RenderCallbacks& callbacks);

// Warns of pictures that look like none; other programs hand these out as a success.
void warn_of_looks(const CommonFlags& flags, const RenderedCaption& result);

// The pictures' names, and unless quiet their seeds.
std::string lines_of(const CommonFlags& flags, const RenderedCaption& result, bool seeded);

// Throws Error naming the captions that failed.
void check_none_failed(const std::vector<RenderedCaption>& results);

}  // namespace octet::cli
