#include "demo/parts.h"

#include <string>
#include <utility>

namespace octet::demo {
namespace {

// Each word between two spaces. Also what the training's drawings lack and people expect, such as
// the dots of a mushroom: that none comes out cannot be promised.
constexpr std::pair<std::string_view, std::string_view> kPartsOfThings[] = {
    {"sun", " ray rays beam beams spike spikes disc centre center "},
    {"house", " roof roofs door doors window windows chimney chimneys wall walls "},
    {"tree", " trunk stem leaf leaves foliage branch branches crown "},
    {"pine", " trunk stem needle needles branch branches "},
    {"flower", " petal petals centre center stem stalk leaf leaves "},
    {"face", " eye eyes mouth smile smiles grin lips nose features "},
    {"mushroom", " cap stem stalk dot dots spot spots "},
    {"boat", " sail sails mast masts hull flag "},
    {"car", " wheel wheels tyre tyres tire tires window windows door doors roof lights "},
    {"cup", " handle handles steam saucer rim "},
    {"arrow", " head tip point shaft "},
    {"star", " point points tip tips "},
    {"ring", " hole "},
    {"cloud", " bump bumps curve curves "},
    {"striped panel", " stripe stripes "},
    {"dotted panel", " dot dots spot spots "},
    {"checkerboard", " square squares check checks "},
    {"hexagon", " corner corners edge edges side sides "},
    {"square", " corner corners edge edges side sides "},
    {"triangle", " corner corners edge edges side sides "},
    {"diamond", " corner corners edge edges side sides "}};

}  // namespace

bool may_have(std::string_view noun, std::string_view part) {
  for (const auto& [thing, parts] : kPartsOfThings) {
    if (thing == noun) return parts.find(" " + std::string(part) + " ") != parts.npos;
  }
  return false;
}

}  // namespace octet::demo
