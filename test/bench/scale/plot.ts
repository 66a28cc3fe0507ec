import type { ScaleResult } from "./scale.bench.ts";

interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly of: (result: ScaleResult) => number;
}

const PANELS: readonly Panel[] = [
  { title: "start to first placement", unit: "s", of: ({ firstPlacementMs }) => firstPlacementMs / 1000 },
  { title: "processor time of that start", unit: "s", of: ({ startCpuMs }) => startCpuMs / 1000 },
  { title: "memory", unit: "MB", of: ({ rssMb }) => rssMb },
  { title: "processor, idle", unit: "% of a core", of: ({ idleCpuPercent }) => idleCpuPercent },
  { title: "processor for each pod's life", unit: "ms", of: ({ podCpuMs }) => podCpuMs },
  { title: "watch traffic for each pod's life", unit: "kB", of: ({ podWatchKb }) => podWatchKb },
];
const COLOURS = ["#1b6ca8", "#d1495b", "#2e8b57", "#8e6c8a"];
const WIDTH = 300;
const HEIGHT = 220;
const MARGIN = { left: 46, right: 12, top: 30, bottom: 34 };

/** The results as a picture: one panel a figure, over the number of proxies, one line for each number of members. */
export function plot(results: readonly ScaleResult[]): string {
  const counts = [...new Set(results.map(({ members }) => members))].sort((a, b) => a - b);
  const panels = PANELS.map((panel, index) => {
    const at = `translate(${(index % 3) * WIDTH}, ${Math.floor(index / 3) * HEIGHT})`;
    return `<g transform="${at}">${panelOf(panel, results, counts)}</g>`;
  });
  const legend = counts.map(
    (members, index) =>
      `<text x="${60 + index * 130}" y="${2 * HEIGHT + 18}" fill="${COLOURS[index % COLOURS.length]}">● ${members} member${members === 1 ? "" : "s"}</text>`,
  );
  const size = `width="${3 * WIDTH}" height="${2 * HEIGHT + 30}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="11">
<title>How the controller grows with members and proxies</title>
<rect width="100%" height="100%" fill="white"/>
${[...panels, ...legend].join("\n")}
</svg>
`;
}

function panelOf({ title, unit, of }: Panel, results: readonly ScaleResult[], counts: readonly number[]): string {
  const most = { x: Math.max(...results.map(({ proxies }) => proxies)), y: niceMaximum(results.map(of)) };
  const x = (proxies: number): number => round(MARGIN.left + (proxies / most.x) * (WIDTH - MARGIN.left - MARGIN.right));
  const y = (value: number): number =>
    round(HEIGHT - MARGIN.bottom - (Math.max(0, value) / most.y) * (HEIGHT - MARGIN.top - MARGIN.bottom));
  const lines = counts.map((members, index) => {
    const points = results
      .filter((result) => result.members === members)
      .sort((a, b) => a.proxies - b.proxies)
      .map((result) => ({ x: x(result.proxies), y: y(of(result)) }));
    const colour = COLOURS[index % COLOURS.length];
    const path = points.map((point) => `${point.x},${point.y}`).join(" ");
    const dots = points.map((point) => `<circle cx="${point.x}" cy="${point.y}" r="2.5" fill="${colour}"/>`).join("");
    return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="1.5"/>${dots}`;
  });
  const ticks = [0, 0.5, 1].map((share) => {
    const [atY, atX] = [y(share * most.y), x(share * most.x)];
    return (
      `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${atY}" y2="${atY}" stroke="#ddd"/>` +
      `<text x="${MARGIN.left - 5}" y="${atY + 4}" text-anchor="end">${round(share * most.y)}</text>` +
      `<text x="${atX}" y="${HEIGHT - MARGIN.bottom + 15}" text-anchor="middle">${Math.round(share * most.x)}</text>`
    );
  });
  const heading = `<text x="${MARGIN.left}" y="18" font-weight="bold">${title}, ${unit}</text>`;
  return [heading, ...ticks, ...lines].join("");
}

/** The next of 1, 2, 5, 10, 20, … */
function niceMaximum(values: readonly number[]): number {
  const most = Math.max(...values, 0.1);
  const power = 10 ** Math.floor(Math.log10(most));
  return power * ([1, 2, 5, 10].find((step) => step * power >= most) ?? 10);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Head of the table in Markdown that has a row for each result. */
export const TABLE_HEAD: string =
  "| members | proxies | first placement | processor until then | memory | idle | idle requests | open files | a pod: processor | a pod: watches | a pod: requests |\n" +
  "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

/** A result as a row of that table. */
export function rowOf(result: ScaleResult): string {
  const { members, proxies, rssMb, openFiles } = result;
  return (
    `| ${members} | ${proxies} | ${(result.firstPlacementMs / 1000).toFixed(1)} s | ${(result.startCpuMs / 1000).toFixed(1)} s | ` +
    `${rssMb.toFixed(0)} MB | ${result.idleCpuPercent.toFixed(1)} % | ${result.idleRequests.toFixed(1)}/s | ${openFiles} | ` +
    `${result.podCpuMs.toFixed(1)} ms | ${result.podWatchKb.toFixed(0)} kB | ${result.podRequests.toFixed(1)} |`
  );
}
