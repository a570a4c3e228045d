"""Frame and style sheet of the page: on a screen light or dark, on a phone, on paper; nothing from elsewhere."""

from __future__ import annotations

from youbot_dynamics.identification.page.animation_script import SCRIPT, script_source
from youbot_dynamics.identification.page.drawing import PALETTE


def document(title: str, body: str, *, moving: bool) -> str:
    """A whole HTML document.

    Args:
        title: of the window, safe in HTML.
        body: content of `<main>`, HTML.
        moving: whether it holds animations and so needs their script, the only one that may run.
    """
    light, dark = (";".join(f"--{role}:{pair[k]}" for role, pair in PALETTE.items()) for k in (0, 1))
    style = _CSS.replace("@LIGHT@", light).replace("@DARK@", dark)
    policy = "default-src 'none'; style-src 'unsafe-inline'" + (f"; script-src {script_source()}" if moving else "")
    script = f"<script>{SCRIPT}</script>\n" if moving else ""
    return _PAGE.format(title=title, policy=policy, style=style, body=body, script=script)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
{script}</body>
</html>
"""

_CSS = """
:root{color-scheme:light dark;--paper:#fff;--warm:213 94 0;--cold:0 114 178;@LIGHT@}
@media screen and (prefers-color-scheme:dark){:root{--paper:#17171b;--warm:245 121 58;--cold:86 180 233;@DARK@}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);overflow-wrap:break-word;font:16px/1.5 system-ui,
-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Noto Sans","DejaVu Sans",sans-serif}
main{max-width:66rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.8rem;line-height:1.2;font-weight:650;margin:0;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:1.25rem;font-weight:650;margin:3rem 0 1rem;padding-top:.9rem;border-top:1px solid var(--grid)}
h3{font-size:1.05rem;font-weight:650;margin:2rem 0 .4rem}
h4{font-size:.95rem;font-weight:600;margin:1.2rem 0 .4rem}
h2+h3,h2+article h3{margin-top:0}
p{margin:.6rem 0;max-width:46rem}
ul{padding-left:1.2rem;max-width:46rem}
li{overflow-wrap:anywhere}
a{color:var(--blue)}
:is(a,summary,.scroll,button,input,select):focus-visible{outline:2px solid var(--blue);outline-offset:2px}
article{margin-bottom:3rem}
.robot,.note,figcaption{color:var(--axis)}
.note,figcaption{font-size:.875rem}
.robot{margin:.3rem 0 1rem}
.summary{font-size:1.1rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;margin:1.2rem 0 0;padding:0;font-size:.875rem}
nav a{display:inline-block;padding:.3rem 0}

.warnings{border:2px solid var(--vermillion);border-radius:6px;padding:.9rem 1.1rem .3rem;margin-top:2rem}
.warnings h2{border:0;margin:0;padding:0;font-size:1.05rem}
.warnings h2::before{content:"\\26a0\\fe0e  "/""}
.warnings ul{margin:.5rem 0 .6rem}

figure{margin:0 0 1.25rem;break-inside:avoid}
figcaption{max-width:46rem;margin-top:.25rem}
.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:0 1.5rem}
.plot{display:block;width:100%;height:auto}
.plot *{stroke-linejoin:round;stroke-linecap:butt}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;margin:0 0 .6rem;padding:0;
max-width:none;font-size:.875rem}
.legend li{display:flex;align-items:center;gap:.5rem}
.swatch{width:30px;height:8px;flex:none}

.stage{display:grid;grid-template-columns:minmax(0,3fr) minmax(15rem,1fr);gap:1rem 1.5rem;align-items:center}
.stage .legend{flex-direction:column;gap:.5rem}
.stage .legend li{align-items:baseline}
.ground{display:block;width:100%;height:auto;border:1px solid var(--grid)}
.ground *{vector-effect:non-scaling-stroke;stroke-linejoin:round}
.ground .grid{fill:none;stroke:var(--grid)}
.ground text{fill:var(--ink);stroke:var(--paper);stroke-width:3px;paint-order:stroke}
.ground .faded{opacity:.5}
.base.main{fill:var(--ink);fill-opacity:.07;stroke-width:1.5}
.live{display:none}
.off{display:block;color:var(--axis);font-variant-numeric:tabular-nums}
.controls{display:grid;grid-template-columns:auto 1fr;gap:.6rem 1rem;align-items:center;margin-top:1rem;
font-size:.875rem}
.controls[hidden]{display:none}
.controls :is(button,select){font:inherit;color:inherit;background:var(--paper);border:1px solid var(--axis);
border-radius:4px;padding:.35rem .8rem;min-width:4.6rem;cursor:pointer}
.controls select{padding:.25rem;min-width:0}
.controls input{accent-color:var(--blue);margin:0}
.controls [type=range]{grid-column:1/-1;width:100%;height:1.5rem}
.controls label{display:flex;gap:.4rem;align-items:center;white-space:nowrap}
.clock{font-variant-numeric:tabular-nums}

.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:.4rem .5rem;text-align:right;vertical-align:baseline;white-space:nowrap}
th{font-weight:600}
thead th{border-bottom:1px solid var(--axis);vertical-align:bottom;font-weight:500;color:var(--axis)}
thead th[scope=colgroup]{border-bottom:1px solid var(--grid)}
thead th[colspan]{text-align:center}
tbody tr+tr>*{border-top:1px solid var(--grid)}
th:first-child{padding-left:0}
tr:first-child>th:first-child,tbody th{text-align:left}
.first{padding-left:1.4rem}

.verdicts :is(.words,.unit,th:nth-child(n+4)){text-align:left}
.verdicts tbody th{overflow-wrap:anywhere}
.verdicts .words{white-space:normal;min-width:16rem;width:100%}
tbody .group{font-weight:500;color:var(--axis);padding-top:1rem}
.verdicts .value{font-weight:600}
.refused :is(.value,.interval,.unit){color:var(--axis);font-weight:400}
.mark{font-family:"DejaVu Sans","Segoe UI Symbol",sans-serif}
.refused .mark{color:var(--vermillion)}
.tag{border:1px solid;border-radius:4px;padding:0 .3em;font-size:.8125rem}
summary{cursor:pointer;color:var(--axis);font-size:.875rem;padding:.3rem 0}

.heat{width:auto}
.heat :is(th,td){padding:.35rem .4rem;border:1px solid var(--grid)}
.heat thead :is(th,td){border-width:0 0 1px}
.heat tbody th{border-width:1px 0}
.heat thead th{text-align:center}
.heat thead span{writing-mode:vertical-rl;transform:rotate(180deg);display:inline-block;text-align:left}
.heat td{min-width:3.2rem;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.positive{background:rgb(var(--cold)/calc(var(--r)*.5))}
.negative{background:rgb(var(--warm)/calc(var(--r)*.5))}
.heat .strong{font-weight:700;outline:2px solid var(--ink);outline-offset:-3px}

dl{margin:0;font-size:.875rem}
dl div{display:flex;flex-wrap:wrap;gap:0 1rem;padding:.25rem 0}
dt{flex:0 0 11rem;color:var(--axis)}
dd{margin:0;flex:1 1 14rem;overflow-wrap:anywhere}

@media screen{
.moving .live{display:inline}
.moving :is(.still,figcaption span){display:none}
}

@media screen and (max-width:44rem){
main{padding:1.5rem 1rem 3rem}
h1{font-size:1.5rem}
.summary{font-size:1rem}
:is(.pair,.stage){grid-template-columns:minmax(0,1fr);gap:.75rem}
.group span{display:inline-block;max-width:calc(100vw - 2rem);white-space:normal}
.scroll tbody th{position:sticky;left:0;background:var(--paper)}
.verdicts,.verdicts tbody{display:block}
.verdicts thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.verdicts tr{display:flex;flex-wrap:wrap;gap:0 .5em;padding:.5rem 0}
.verdicts tr+tr{border-top:1px solid var(--grid)}
.verdicts tbody tr>*{border:0;padding:0;position:static}
.verdicts tbody :is(th,.words){flex:1 0 100%;width:auto;min-width:0;white-space:normal}
.verdicts .unit{order:1}
.verdicts .interval{order:2}
.verdicts .words{order:3}
.verdicts .interval:not(:empty)::before{content:"("}
.verdicts .interval:not(:empty)::after{content:")"}
}

@media print{
@page{margin:15mm}
html{font-size:9.5pt}
body{font-size:1rem}
main{max-width:none;padding:0}
:is(nav,.controls,.off){display:none!important}
h2{margin:1.5rem 0 .8rem}
h2,h3,h4,.legend{break-after:avoid}
tr,.legend,.heat,.fit,.warnings,article{break-inside:avoid}
article{margin-bottom:1.5rem}
thead{display:table-header-group}
details::details-content{display:block;content-visibility:visible}
.scroll{overflow:visible}
table{font-size:8pt}
th,td{padding:.25rem}
.first{padding-left:.7rem}
.verdicts .words{min-width:0}
.heat :is(th,td){padding:.15rem}
.heat td{min-width:0}
}
"""
