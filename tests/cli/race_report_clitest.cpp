// The HTML report in a real browser, as wide as a desk's screen and as a phone's, in light and in dark.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Looks at the page from inside and tells the page around it.
constexpr std::string_view probe = R"JS(<script>addEventListener('load',function(){
 function rgb(text){return text.match(/[\d.]+/g).map(Number);}
 function paper(node){for(;node;node=node.parentElement){var c=rgb(getComputedStyle(node).backgroundColor);
  if(c.length<4||c[3]>0)return c;}return [255,255,255];}
 function light(c){var l=c.slice(0,3).map(function(v){v/=255;return v<=.04045?v/12.92:Math.pow((v+.055)/1.055,2.4);});
  return .2126*l[0]+.7152*l[1]+.0722*l[2];}
 function contrast(node){var a=light(rgb(getComputedStyle(node).color)),b=light(paper(node));
  return (Math.max(a,b)+.05)/(Math.min(a,b)+.05);}
 function press(key){document.dispatchEvent(new KeyboardEvent('keydown',{key:key,bubbles:true,cancelable:true}));}
 function current(){return steps.findIndex(function(s){return s.getAttribute('aria-current')==='step';});}
 var steps=Array.from(document.querySelectorAll('.step')),said=[];
 function tell(name,value){said.push(name+'='+value);}
 tell('width',innerWidth);tell('dark',matchMedia('(prefers-color-scheme: dark)').matches);
 tell('page_scrolls_sideways',document.documentElement.scrollWidth>innerWidth);
 tell('steps',steps.length);
 tell('card_min_ok',steps.every(function(s){return s.getBoundingClientRect().width>=130;}));
 var texts=Array.from(document.querySelectorAll('h2,h3,h4,p,li,.name,.sql,.said,td,th,summary')).filter(function(n){return n.offsetWidth>0;});
 tell('font_min_ok',texts.every(function(n){return parseFloat(getComputedStyle(n).fontSize)>=12;}));
 var pale=texts.filter(function(n){return contrast(n)<4.5;});
 tell('contrast_ok',pale.length===0||pale[0].outerHTML.slice(0,80));
 press('ArrowDown');press('ArrowDown');press('ArrowDown');tell('after_three_down',current());
 tell('focus_follows',document.activeElement===steps[2]);
 tell('panel_shown',!document.getElementById('panel').hidden);
 tell('panel_says_locks',document.getElementById('now').textContent.indexOf('holds')>=0);
 press('ArrowUp');tell('after_one_up',current());
 document.getElementById('next').click();tell('after_next',current());
 document.getElementById('previous').click();tell('after_previous',current());
 press('Escape');tell('panel_closed',document.getElementById('panel').hidden);
 var links=Array.from(document.querySelectorAll('[src],[href]')).map(function(n){return n.getAttribute('src')||n.getAttribute('href');});
 tell('only_own_links',links.every(function(l){return l[0]==='#'||l.indexOf('data:')===0;}));
 tell('fetched',performance.getEntriesByType('resource').length);
 parent.postMessage(said.join('\n'),'*');
});</script>)JS";

constexpr std::string_view scenario = R"(
setup { CREATE TABLE account(id int PRIMARY KEY, n int); INSERT INTO account VALUES (7, 0); }
session a
    step begin { BEGIN }
    step read { SELECT n FROM account WHERE id = 7 \gset }
    step write { UPDATE account SET n = :n + 1 WHERE id = 7 }
    step commit { COMMIT }
session "<b>&"
    step read2 { SELECT n FROM account WHERE id = 7 \gset }
    step write2 { UPDATE account SET n = :n + 1 WHERE id = 7 }
invariant "both count" { SELECT n FROM account WHERE n <> 2 }
)";

class RaceReport : public CommandTest {
  protected:
    void SetUp() override {
        if (run_in_shell("command -v chromium").exit_code != 0) GTEST_SKIP() << "no chromium: scripts/setup tests";
        std::ofstream(scratch_.path() / "t.race") << scenario;
        ASSERT_EQ(run({"race", "t.race", "--html", "report.html"}).exit_code, 1);
        std::stringstream page;
        page << std::ifstream(scratch_.path() / "report.html").rdbuf();
        std::string text = page.str();
        text.insert(text.find("</body>"), probe);
        std::ofstream(scratch_.path() / "probed.html") << text;
    }

    /// What the probe tells of the report in a window of that width; fails the test where the browser complains.
    [[nodiscard]] std::string told(int width, const std::string& option = "") const {
        std::ofstream(scratch_.path() / "around.html") << fmt::format(
            "<!DOCTYPE html><body><pre id=out>nothing</pre><iframe src=\"probed.html\" style=\"width:{}px;height:900px;"
            "border:0\"></iframe><script>addEventListener('message',function(e){{document.getElementById('out')."
            "textContent=e.data;}});</script>",
            width);
        const ProcessResult result = run_in_shell(
            fmt::format("chromium --headless --no-sandbox --disable-gpu --user-data-dir=\"$PWD/profile\" "
                        "--enable-logging=stderr {} "
                        "--virtual-time-budget=3000 --window-size=1400,1000 --dump-dom \"file://$PWD/around.html\"",
                        option));
        EXPECT_EQ(result.exit_code, 0);
        EXPECT_THAT(result.errors, Not(HasSubstr("CONSOLE")));
        return result.output;
    }

    static void expect_usable(const std::string& told) {
        for (const char* part :
             {"page_scrolls_sideways=false", "steps=7", "card_min_ok=true", "font_min_ok=true", "contrast_ok=true",
              "after_three_down=2", "focus_follows=true", "panel_shown=true", "panel_says_locks=true", "after_one_up=1",
              "after_next=2", "after_previous=1", "panel_closed=true", "only_own_links=true", "fetched=0"}) {
            EXPECT_THAT(told, HasSubstr(part));
        }
    }
};

TEST_F(RaceReport, CanBeReadAndWalkedThroughOnADesk) {
    const std::string light = told(1280);
    EXPECT_THAT(light, HasSubstr("width=1280"));
    EXPECT_THAT(light, HasSubstr("dark=false"));
    expect_usable(light);
}

TEST_F(RaceReport, CanBeReadAndWalkedThroughOnAPhone) {
    const std::string light = told(390);
    EXPECT_THAT(light, HasSubstr("width=390"));
    expect_usable(light);
}

TEST_F(RaceReport, CanBeReadInTheDark) {
    const std::string dark = told(390, "--force-dark-mode");
    EXPECT_THAT(dark, HasSubstr("dark=true"));
    expect_usable(dark);
}

}  // namespace
}  // namespace rowlock::test
