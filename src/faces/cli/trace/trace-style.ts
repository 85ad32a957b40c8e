/** The style sheet for trace pages, with two colour schemes, one column on narrow screens and three on wide ones. */
export const traceStyle = `
:root{color-scheme:light dark;--text:#1b1d21;--dim:#5a5f69;--line:#d5d9e0;--page:#fff;--good:#176b2c;--bad:#b3261e;--warn:#7d4c00;--none:#3465b0;--lane:#f2f4f7}
@media(prefers-color-scheme:dark){:root{--text:#e7e9ee;--dim:#a4abb8;--line:#383d47;--page:#15171b;--good:#7bd88f;--bad:#ff8f85;--warn:#ffc069;--none:#86b7ff;--lane:#1f2329}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;margin:1rem auto;max-width:76rem;padding:0 1rem;color:var(--text);background:var(--page)}
h1{font-size:1.4rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:2rem 0 0}h3{font-size:1rem;margin:1.2rem 0 .3rem}
small{font-size:.85rem}h2 small{font-weight:400;color:var(--dim)}p{margin:.3rem 0}p,li{overflow-wrap:anywhere}ul,ol{margin:.3rem 0;padding:0 0 0 1.2rem}ol{list-style:none;padding:0}
a{color:inherit}code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}.dim,.dim a{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}.none{color:var(--none)}
.rows{margin:1rem 0}.row{display:grid;grid-template-columns:1fr;gap:.1rem 1rem;padding:.5rem 0;border-top:1px solid var(--line)}
.head{border:0;padding:0}.axis{position:relative;height:1.4rem;font-size:.75rem;color:var(--dim)}.axis span{position:absolute;white-space:nowrap}
.axis span:not(:first-child){transform:translateX(-50%)}.axis span.end:not(:first-child){transform:translateX(-100%)}
.lane{display:grid;gap:2px;align-content:center;min-height:1.2rem;padding:3px 0;background:linear-gradient(to right,var(--line) 1px,transparent 1px) 0 0/var(--tick) 100%,var(--lane)}
.bar{position:relative;height:8px;min-width:3px;border-radius:2px;background:currentColor}
.bar.bad{background:repeating-linear-gradient(135deg,currentColor 0 4px,transparent 4px 7px);outline:1px solid currentColor;outline-offset:-1px}
.answers span{display:block;overflow-wrap:anywhere;font-size:.9rem}.text{font-size:.9rem;color:var(--dim)}.text b{font-weight:600;color:var(--text)}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}td,th{padding:.3rem .8rem .3rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
.name small{display:inline-block}.time,.client{white-space:nowrap}td:last-child{overflow-wrap:anywhere}.meter{display:block;max-width:8rem;height:4px;min-width:2px;background:var(--none);border-radius:2px}
@media(min-width:60rem){.row{grid-template-columns:20rem 1fr 15rem}.text{grid-column:1/-1;padding-left:1.2rem}}
@media(max-width:40rem){.wide{display:none}table{font-size:.8rem}td,th{padding-right:.5rem}.cards .time{white-space:normal}.cards tr{display:block;border-bottom:1px solid var(--line);padding:.3rem 0}.cards td{display:block;border:0;padding:0}.cards th{display:none}.cards td:nth-child(2)::after{content:" queries"}}
@media print{body{max-width:none}.row{break-inside:avoid}}
`;
