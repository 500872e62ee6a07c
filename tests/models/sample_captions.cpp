#include "models/sample_captions.h"

#include <utility>

namespace octet::test {
namespace {

// In the form in which the model takes them.
const char* const kPhoto =
    R"({"high_level_description":"A mountain railway platform in early snow, seen from acro)"
    R"(ss the track, where a conductor waves off a red two-car train.","style_description":)"
    R"({"aesthetics":"quiet, cold, a little nostalgic","lighting":"low morning sun through )"
    R"(thin fog, long blue shadows","photo":"50mm lens, f/5.6, from standing height, slight)"
    R"( haze","medium":"photograph","color_palette":["#B22A2A","#DCE6EC","#31475E","#E0B050)"
    R"("]},"compositional_deconstruction":{"background":"Fir slopes under fresh snow, a woo)"
    R"(den station house and two tracks that bend out of sight.","elements":[{"type":"obj",)"
    R"("bbox":[320,120,780,640],"desc":"A short red train of two cars with frosted windows,)"
    R"( its doors closing.","color_palette":["#B22A2A","#DCE6EC"]},{"type":"obj","bbox":[41)"
    R"(0,700,900,820],"desc":"A conductor in a long dark coat who lifts a green signal disc)"
    R"(."},{"type":"text","bbox":[60,540,150,960],"text":"GLEIS 2 · RÜCKFAHRT 17:05","desc")"
    R"(:"Plain white letters on a blue enamel sign under the eaves."}]}})";
const char* const kPoster =
    R"({"high_level_description":"A tall poster for a night of chamber music, a cello drawn)"
    R"( with one single line.","style_description":{"aesthetics":"sparse, elegant, playful")"
    R"(,"lighting":"none, flat areas","medium":"graphic_design","art_style":"continuous lin)"
    R"(e drawing on coloured paper","color_palette":["#1D2A26","#F4D9B5","#C4472B"]},"compo)"
    R"(sitional_deconstruction":{"background":"Warm sand-coloured paper with a faint grain )"
    R"(and a dark band along the foot.","elements":[{"type":"obj","bbox":[90,180,700,820],")"
    R"(desc":"A cello whose outline never lifts the pen, its bow crossing at an angle.","co)"
    R"(lor_palette":["#1D2A26","#C4472B"]},{"type":"text","bbox":[720,120,850,880],"text":")"
    R"(VIER\nSAITEN","desc":"Two lines of thin capitals, wide apart."},{"type":"text","bbox)"
    R"(":[880,150,940,850],"text":"Halle 3 · 20:15 · 当日券あり","desc":"A small line of light t)"
    R"(ype on the dark band."}]}})";
const std::string kSmallest =
    R"({"compositional_deconstruction":{"background":"A plain grey wall.","elements":[]}})";

}  // namespace

std::string with_elements(const std::string& elements) {
  return R"({"high_level_description":"A wall.",)"
         R"("compositional_deconstruction":{"background":"A wall.","elements":[)" +
         elements + "]}}";
}

std::string with_style(const std::string& style) {
  return R"({"high_level_description":"A wall.","style_description":)" + style +
         R"(,"compositional_deconstruction":{"background":"A wall.","elements":[]}})";
}

std::vector<ValidCaption> valid_captions() {
  return {
      {"photo", kPhoto},
      {"poster", kPoster},
      {"smallest", kSmallest},
      {"escapes", with_elements(R"({"type":"text","text":"a\"b\\c/\b\f\n\r\t\u0000\u001f)"
                                "\x7f\xe2\x80\xa8"
                                R"(","desc":""})")},
      {"backslash_u", with_elements(R"({"type":"obj","desc":"\\u00e9"})")},
      {"edges", with_elements(R"({"type":"obj","bbox":[0,0,1000,1000],"desc":"d"},)"
                              R"({"type":"obj","bbox":[5,5,5,5],"desc":"d","color_palette":[]})")},
      {"most_colors", with_elements(R"({"type":"obj","desc":"d","color_palette":)"
                                    R"(["#000000","#FFFFFF","#ABCDEF","#012345","#6789AB"]})")},
  };
}

std::vector<FaultyCaption> faulty_captions() {
  const std::string root = "$";
  const std::string style = "$.style_description";
  const std::string part = "$.compositional_deconstruction";
  const std::string element = part + ".elements[0]";
  const auto boxed = [](const std::string& box) {
    return with_elements(R"({"type":"obj","bbox":)" + box + R"(,"desc":"d"})");
  };
  const auto colored = [](const std::string& colors) {
    return with_elements(R"({"type":"obj","desc":"d","color_palette":)" + colors + "}");
  };
  const std::string art = R"("aesthetics":"a","lighting":"l","medium":"m","art_style":"s")";
  std::string colors17 = "[\"#000000\"";
  for (int i = 0; i < 16; ++i) colors17 += ",\"#000000\"";
  colors17 += "]";
  std::vector<FaultyCaption> faulty = {
      // 1: escapes
      {"ascii", with_elements(R"({"type":"obj","desc":"caf\u00e9"})"), root, "literal UTF-8", true},
      {"ascii_pair", with_elements(R"({"type":"obj","desc":"\ud83d\ude00"})"), root, "UTF-8", true},
      // 2: no JSON
      {"empty", "", root, "is empty"},
      {"plain", "a red fox in the snow", root, "`wrap_text`"},
      {"number", "12", root, "expected an object, got 12"},
      {"cut", std::string(kPhoto).substr(0, 300), root, "invalid JSON at byte"},
      {"comma", R"({"compositional_deconstruction":{"background":"b","elements":[],}})", root,
       "invalid JSON at byte 65"},
      {"trailing", kSmallest + "x", root, "invalid JSON"},
      {"twice", R"({"a":1,"a":2})", root, R"("a" appears twice)"},
      {"nul", std::string("{\0}", 3), root, "NUL"},
      {"latin1", with_elements("{\"type\":\"obj\",\"desc\":\"\xe9\"}"), root, "UTF-8"},
      {"newline", with_elements("{\"type\":\"obj\",\"desc\":\"a\nb\"}"), root, "control char"},
      {"surrogate", with_elements(R"({"type":"obj","desc":"\ud800"})"), root, "literal UTF-8"},
      {"deep", std::string(65, '['), root, "nested more than 64"},
      {"nan", boxed("[NaN,0,0,0]"), root, "invalid JSON"},
      {"overflow", boxed("[1e400,0,0,0]"), root, "number overflow"},
      // 3 to 5: the root
      {"array", "[]", root, "expected an object, got an array of 0"},
      {"description", R"({"high_level_description":[],)" + kSmallest.substr(1),
       "$.high_level_description", "expected a string, got an array of 0"},
      // 6 to 11: the style
      {"style_type", with_style("\"x\""), style, R"(expected an object, got "x")"},
      {"both_kinds", with_style("{" + art + R"(,"photo":"p"})"), style, "got both"},
      {"no_kind", with_style(R"({"aesthetics":"a"})"), style, "got neither"},
      {"misspelt_kind", with_style(R"({"aesthetics":"","lighting":"","medium":"","art-style":""})"),
       style, R"(got neither; "art-style" seems to stand for art_style)"},
      {"style_order",
       with_style(R"({"lighting":"l","aesthetics":"a","medium":"m","art_style":"s"})"), style,
       "in the order lighting, aesthetics, medium, art_style, expected aesthetics", true},
      {"photo_order", with_style(R"({"aesthetics":"a","lighting":"l","medium":"m","photo":"p"})"),
       style, "expected aesthetics, lighting, photo, medium", true},
      {"style_missing", with_style(R"({"art_style":"s"})"), style,
       "aesthetics, lighting, medium are missing"},
      {"palette_first", with_style(R"({"color_palette":[],)" + art + "}"), style, "in the order",
       true},
      {"palette_type", with_style("{" + art + R"(,"color_palette":"#000000"})"),
       style + ".color_palette", "expected an array"},
      {"palette_17", with_style("{" + art + ",\"color_palette\":" + colors17 + "}"),
       style + ".color_palette", "at most 16 colors, got 17"},
      // 12 to 15: the deconstruction
      {"nothing", "{}", part, "is missing"},
      {"part_type", R"({"compositional_deconstruction":null})", part,
       "expected an object, got null"},
      {"misspelt_part", R"({"compositional_deconstuction":{}})", part,
       R"(; "compositional_deconstuction" seems to stand for compositional_deconstruction)"},
      {"misspelt_background", R"({"compositional_deconstruction":{"backgroud":"b","elements":[]}})",
       part + ".background",
       R"(is missing, expected a string; "backgroud" seems to stand for background)"},
      {"no_background", R"({"compositional_deconstruction":{"elements":[]}})", part + ".background",
       "is missing"},
      {"background", R"({"compositional_deconstruction":{"background":1,"elements":[]}})",
       part + ".background", "expected a string, got 1"},
      {"no_elements", R"({"compositional_deconstruction":{"background":""}})", part + ".elements",
       "is missing"},
      {"part_order", R"({"compositional_deconstruction":{"elements":[],"background":""}})", part,
       "expected background, elements", true},
      {"elements", R"({"compositional_deconstruction":{"background":"","elements":{}}})",
       part + ".elements", "expected an array, got an object"},
      // 16 and 17: elements
      {"element_type", with_elements("7"), element, "expected an object, got 7"},
      {"no_type", with_elements(R"({"desc":"d"})"), element + ".type", "is missing"},
      {"type", with_elements(R"({"type":"image","desc":"d"})"), element + ".type",
       R"(expected "obj" or "text", got "image")"},
      {"type_long", with_elements(R"({"type":"object","desc":"d"})"), element + ".type",
       R"(got "object"; did you mean "obj"?)"},
      {"type_misspelt", with_elements(R"({"type":"txt","text":"t","desc":"d"})"), element + ".type",
       R"(got "txt"; did you mean "text"?)"},
      {"type_number", with_elements(R"({"type":1})"), element + ".type", "got 1"},
      {"no_desc", with_elements(R"({"type":"obj"})"), element, "desc is missing"},
      {"misspelt_desc", with_elements(R"({"type":"obj","description":"d"})"), element,
       R"(desc is missing, expected type, bbox, desc, color_palette; "description" seems to)"},
      {"no_text", with_elements(R"({"type":"text","desc":"d"})"), element, "text is missing"},
      {"element_order", with_elements(R"({"desc":"d","type":"obj"})"), element, "order desc, type",
       true},
      {"text_in_obj", with_elements(R"({"type":"obj","text":"t","desc":"d"})"), element + ".text",
       "this is an \"obj\""},
      // 18: boxes
      {"box_type", boxed("1"), element + ".bbox", "array of 4 integers"},
      {"box_3", boxed("[1,2,3]"), element + ".bbox", "got an array of 3"},
      {"box_float", boxed("[1,2.0,3,4]"), element + ".bbox[1]", "expected an integer, got 2.0"},
      {"box_exponent", boxed("[0,0,1e3,4]"), element + ".bbox[2]",
       "expected an integer, got 1000.0"},
      {"box_bool", boxed("[0,0,0,true]"), element + ".bbox[3]", "expected an integer, got true"},
      {"box_text", boxed(R"(["0",0,0,0])"), element + ".bbox[0]", "expected an integer"},
      {"box_huge", boxed("[0,0,0,99999999999999999999]"), element + ".bbox[3]",
       "expected an integer"},
      {"box_big", boxed("[0,0,0,18446744073709551615]"), element + ".bbox[3]", "from 0 to 1000"},
      {"box_1001", boxed("[0,0,1001,0]"), element + ".bbox[2]", "from 0 to 1000, got 1001"},
      {"box_negative", boxed("[-1,0,0,0]"), element + ".bbox[0]", "from 0 to 1000, got -1"},
      {"box_upside", boxed("[9,0,3,1]"), element + ".bbox", "y_min is 9, above y_max, 3"},
      {"box_mirrored", boxed("[0,8,3,1]"), element + ".bbox", "x_min is 8, above x_max, 1"},
      // 19: colors
      {"color_lower", colored(R"(["#a1B2c3"])"), element + ".color_palette[0]", "upper-case", true},
      {"color_short", colored(R"(["#FFF"])"), element + ".color_palette[0]", R"(got "#FFF")"},
      {"color_name", colored(R"(["#000000","red"])"), element + ".color_palette[1]", "got \"red\""},
      {"color_digit", colored(R"(["#00000G"])"), element + ".color_palette[0]", "got"},
      {"color_number", colored("[0]"), element + ".color_palette[0]", "got 0"},
      {"palette_6", colored(colors17), element + ".color_palette", "at most 5 colors, got 17"},
  };
  return faulty;
}

}  // namespace octet::test
