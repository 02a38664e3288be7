#include "race/report_html_assets.hpp"

namespace rowlock::race {

const std::string_view report_style = R"CSS(
:root{color-scheme:light dark;--ink:#17202c;--soft:#566273;--paper:#f6f8fb;--card:#fff;--line:#cfd7e2;--code:#eef2f7;
--bad:#a4152b;--badbg:#fdecee;--wait:#7c5200;--waitbg:#fff4dc;--good:#14623a;--goodbg:#e6f5ec;--focus:#1f5fd0;
--s0:#1f5fd0;--s1:#8a3fb0;--s2:#0b7a75;--s3:#b3541e}
@media(prefers-color-scheme:dark){:root{--ink:#e7ecf3;--soft:#a3afbf;--paper:#0f141b;--card:#19212c;--line:#364253;--code:#222c39;
--bad:#ff98a3;--badbg:#3b1b21;--wait:#f3c669;--waitbg:#352a10;--good:#83dba9;--goodbg:#15301f;--focus:#7eaaff;
--s0:#82abff;--s1:#d39bf0;--s2:#5fd3cb;--s3:#f2a878}}
*{box-sizing:border-box}
html{scroll-padding:5rem 0 9rem}
body{margin:0;font:16px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;color:var(--ink);background:var(--paper)}
main{max-width:76rem;margin:0 auto;padding:1.5rem 1.25rem 12rem}
h1{font-size:1.05rem;font-weight:600;letter-spacing:.02em;margin:0 0 .4rem;color:var(--soft)}
h2{font-size:1.3rem;margin:0;overflow-wrap:anywhere}
h3{font-size:1.12rem;margin:2rem 0 .2rem;line-height:1.35}h4{font-size:.95rem;margin:1.4rem 0 .4rem}
p{margin:.3rem 0}.soft{color:var(--soft)}.bad{color:var(--bad)}.good{color:var(--good)}
code,pre,td,th,.sql,.mono{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
pre,.sql{white-space:pre-wrap;overflow-wrap:anywhere;margin:.25rem 0}
section{margin:0 0 2.5rem}
.head{border-left:6px solid var(--line);background:var(--card);padding:.9rem 1.1rem;border-radius:4px;border-top:1px solid var(--line);border-bottom:1px solid var(--line);border-right:1px solid var(--line)}
.head.is-bad{border-left-color:var(--bad)}.head.is-good{border-left-color:var(--good)}.head.is-open{border-left-color:var(--wait)}
.verdict{font-weight:650}
nav ul{list-style:none;margin:.4rem 0 1.6rem;padding:0;columns:2 18rem}nav a{color:inherit;overflow-wrap:anywhere}
.overview{margin:.8rem 0 1rem;overflow-x:auto}.overview svg{display:block;max-width:100%;height:auto}
.time{display:grid;grid-template-columns:repeat(var(--sessions),minmax(9.2rem,1fr));gap:0 .7rem;margin:0;padding:0;list-style:none}
.scroll{overflow-x:auto;padding:3px;margin:-3px}
.lane{position:sticky;top:0;z-index:1;background:var(--paper);padding:.35rem .2rem;font-weight:650;border-bottom:3px solid var(--hue);overflow-wrap:anywhere}
.gap{position:relative;min-height:2.2rem}
.gap::before{content:"";position:absolute;left:50%;top:0;bottom:0;border-left:2px solid var(--line)}
.gap.held::before{left:calc(50% - 7px);width:14px;border:2px dashed var(--wait);border-top:0;border-bottom:0;background:var(--waitbg)}
.cell{padding:.3rem 0;min-width:0}
.step{display:block;background:var(--card);border:1px solid var(--line);border-top:3px solid var(--hue);border-radius:6px;padding:.45rem .6rem .5rem;cursor:pointer;outline:0}
.step .name{display:flex;gap:.5em;align-items:baseline;font-weight:650;overflow-wrap:anywhere}
.step .no{color:var(--soft);font-weight:500;font-size:.85rem}
.step .what{margin-left:auto;font-size:.8rem;font-weight:600;white-space:nowrap}
.step .said{font-size:.88rem;overflow-wrap:anywhere;margin-top:.15rem}
.step .locks{font-size:.82rem;color:var(--soft);margin:.25rem 0 0;padding:0;list-style:none}
.step .locks li::before{content:"locks ";font-variant:small-caps}
.step.waits{border-style:dashed;border-top-style:solid;background:var(--waitbg)}.step.waits .what,.step.waits .said{color:var(--wait)}
.step.goes{background:var(--waitbg)}.step.goes .what{color:var(--wait)}
.step.fails{background:var(--badbg);border-color:var(--bad)}.step.fails .what,.step.fails .said{color:var(--bad)}
.step.matters{box-shadow:0 0 0 2px var(--bad)}.step .dot{color:var(--bad)}
.step.at{box-shadow:0 0 0 3px var(--focus)}
.hue0{--hue:var(--s0)}.hue1{--hue:var(--s1)}.hue2{--hue:var(--s2)}.hue3{--hue:var(--s3)}
table{border-collapse:collapse;background:var(--card)}td,th{border:1px solid var(--line);padding:.25em .7em;text-align:left;overflow-wrap:anywhere}
td{background:var(--badbg)}
.order{display:flex;flex-wrap:wrap;gap:.3rem;margin:.4rem 0;padding:0;list-style:none}
.order li{border:1px solid var(--line);border-left:4px solid var(--hue);background:var(--card);border-radius:4px;padding:.05rem .5rem;font-size:.85rem;overflow-wrap:anywhere}
.order li.matters{border-color:var(--good);background:var(--goodbg);font-weight:650}
details{margin:.8rem 0}summary{cursor:pointer;color:var(--soft)}
.panel{position:fixed;left:0;right:0;bottom:0;z-index:3;background:var(--card);border-top:2px solid var(--focus);box-shadow:0 -4px 18px rgba(0,0,0,.16);padding:.6rem 1rem}
.panel[hidden]{display:none}
.panel div.in{max-width:74rem;margin:0 auto;display:flex;gap:.8rem;align-items:flex-start}
.panel .now{flex:1;min-width:0;max-height:8.5rem;overflow-y:auto;font-size:.9rem}.panel .now ul{margin:.1rem 0;padding-left:1.1rem}
.panel .now .sql{margin:0}
button{font:inherit;color:inherit;background:var(--code);border:1px solid var(--line);border-radius:6px;padding:.3rem .75rem;cursor:pointer}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px}
.step .after{display:none}
@media(max-width:34rem){main{padding:1rem .7rem 13rem}.time{gap:0 .35rem;grid-template-columns:repeat(var(--sessions),minmax(8.6rem,1fr))}
.step{padding:.35rem .4rem}.step .name{flex-wrap:wrap;gap:0 .35em}.step .what{margin-left:0}code,pre,.sql{font-size:12px}.panel div.in{flex-wrap:wrap}.panel .now{flex-basis:100%;order:3}}
@media print{:root{color-scheme:light}body{background:#fff}main{padding:0}.panel{display:none}.scroll,.overview{overflow:visible}.cell{break-inside:avoid}.lane{position:static}}
)CSS";

const std::string_view report_script = R"JS(
'use strict';
(function(){
 var steps=Array.prototype.slice.call(document.querySelectorAll('.step')),panel=document.getElementById('panel'),now=document.getElementById('now'),at=-1;
 if(!steps.length)return;
 function show(i,move){
  i=Math.max(0,Math.min(steps.length-1,i));
  if(at>=0){steps[at].classList.remove('at');steps[at].removeAttribute('aria-current');}
  at=i;var step=steps[i];
  step.classList.add('at');step.setAttribute('aria-current','step');
  now.replaceChildren.apply(now,Array.prototype.map.call(step.querySelector('.after').childNodes,function(n){return n.cloneNode(true);}));
  panel.hidden=false;
  if(move){step.focus({preventScroll:true});step.scrollIntoView({block:'nearest',inline:'nearest'});}
 }
 steps.forEach(function(step,i){
  step.tabIndex=0;
  step.addEventListener('click',function(){show(i,true);});
  step.addEventListener('focus',function(){if(at!==i)show(i,false);});
 });
 document.getElementById('next').addEventListener('click',function(){show(at+1,true);});
 document.getElementById('previous').addEventListener('click',function(){show(at-1,true);});
 document.addEventListener('keydown',function(e){
  if(e.ctrlKey||e.metaKey||e.altKey)return;
  var k=e.key;
  if(k==='ArrowDown'||k==='ArrowRight'||k==='j')show(at+1,true);
  else if(k==='ArrowUp'||k==='ArrowLeft'||k==='k')show(at-1,true);
  else if(k==='Home')show(0,true);else if(k==='End')show(steps.length-1,true);
  else if(k==='Escape'){panel.hidden=true;return;}
  else return;
  e.preventDefault();
 });
 document.querySelectorAll('a[href^="#"]').forEach(function(a){a.addEventListener('click',function(e){
  var to=document.getElementById(a.getAttribute('href').slice(1));var i=steps.indexOf(to);
  if(i>=0){e.preventDefault();show(i,true);}
 });});
})();
)JS";

}  // namespace rowlock::race
