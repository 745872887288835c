// The page: what comes from outside is escaped, and nothing is loaded from elsewhere. That it is
// well-formed is for a real parser: html_page_test.py.
#include "apps/weir/simulate/html.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "apps/weir/simulate/options.h"

namespace weir::simulate {
namespace {

Tour MustRun(TourPlan plan) {
  auto tour = RunTour(std::move(plan));
  EXPECT_TRUE(tour.ok()) << tour.error().message;
  return *std::move(tour);
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(EscapeHtml, LeavesNothingThatCouldEndTextOrAttribute) {
  EXPECT_EQ(EscapeHtml("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(EscapeHtml("&lt;"), "&amp;lt;");
  EXPECT_EQ(EscapeHtml(std::string("\x00\x1b", 2)), "??");
  EXPECT_EQ(EscapeHtml("plain text, ümlaut"), "plain text, ümlaut");
}

TEST(Html, EscapesTheNameOfARecording) {
  TourPlan plan = *MakePlan({.algorithms = {"sliding-window", "min-gap"}});
  plan.traffic.clear();
  plan.trace = Workload{"<script>alert('x')</script>", "a & b", {"<k>"}, {{Duration(0), 0, 1}}};
  const std::string page = Html(MustRun(std::move(plan)));
  EXPECT_EQ(Count(page, "<script>"), 1U);  // our own
  EXPECT_NE(page.find("&lt;script&gt;alert(&#39;x&#39;)"), std::string::npos);
  EXPECT_NE(page.find("a &amp; b"), std::string::npos);
}

TEST(Html, LoadsNothingFromElsewhere) {
  const std::string page = Html(MustRun(*MakePlan({})));
  for (const char* part : {"http:", "https:", "//", "src=", "href=", "@import", "url("}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

TEST(Html, ShowsEveryAlgorithmOnEveryTraffic) {
  const Tour tour = MustRun(*MakePlan({.algorithms = {"all"}}));
  const std::string page = Html(tour);
  const size_t rows = tour.plan.contenders.size() * tour.stages.size();
  EXPECT_EQ(Count(page, "<div class=\"row\" "), rows);
  EXPECT_EQ(Count(page, "<svg "), 2 * rows);
  EXPECT_EQ(Count(page, ">pick</span>"), 1U);
}

TEST(Html, SaysWhatWasMeasured) {
  const std::string page =
      Html(MustRun(*MakePlan({.algorithms = {"fixed-window", "min-gap"}, .traffic = {"edge"}})));
  EXPECT_NE(page.find("fixed-window: at most 2.00x the limit in any window"), std::string::npos);
  EXPECT_NE(page.find("<b>199</b> admitted, 28.5 %"), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(HtmlAssets, NeedNoEscaping) {
  for (const std::string_view text : {HtmlStyle(), HtmlScript()}) {
    EXPECT_EQ(text.find_first_of("<&"), std::string_view::npos);
  }
}

}  // namespace
}  // namespace weir::simulate
