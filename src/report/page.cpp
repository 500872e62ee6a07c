#include "report/page.h"

#include <fmt/format.h>

#include "report/html.h"

namespace octet::report {
namespace {

constexpr const char* kPageStyle = R"(
:root{color-scheme:light dark;--ink:#1c2430;--dim:#5d6875;--paper:#fbfaf7;--card:#fff;
--edge:#dcd9d0;--good:#1c7c4a;--bad:#b3261e;--accent:#2b62a8}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--dim:#9aa4b0;--paper:#14171c;
--card:#1c2128;--edge:#343b45;--good:#5fc58f;--bad:#ff8a80;--accent:#7fb2f0}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
margin:0 auto;max-width:72rem;padding:2rem 1.25rem 4rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}
.dim,.tick,figcaption,th{color:var(--dim)}code{font-size:.85em;overflow-wrap:anywhere}
.verdict{border:2px solid;border-radius:.6rem;padding:.9rem 1.1rem;margin:1.2rem 0}
.verdict strong{font-size:1.25rem;letter-spacing:.05em}.pass{color:var(--good)}
.fail{color:var(--bad)}.verdict ul{margin:.4rem 0 0;color:var(--ink)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}
td,th{padding:.3rem .7rem .3rem 0;text-align:left;vertical-align:top;font-weight:400;
border-bottom:1px solid var(--edge);font-variant-numeric:tabular-nums}
svg{width:100%;max-width:44rem;background:var(--card);border:1px solid var(--edge);
border-radius:.5rem}.tick{font-size:12px;fill:var(--dim)}.grid{stroke:var(--edge)})";

}  // namespace

std::string page_head(std::string_view title, std::string_view style) {
  return fmt::format(R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{}</title>
<style>{}{}
</style></head><body>
)",
                     html_text(title), kPageStyle, style);
}

}  // namespace octet::report
