import { stripVTControlCharacters } from "node:util";
import { textWidth } from "../../src/cli/shared/text-width.ts";
import { spansOf, type Tone } from "./spans.ts";

/** A state of a terminal's screen, and how long it is shown. */
export interface Frame {
  /** Lines with their colours, as a terminal gets them. */
  readonly lines: readonly string[];
  readonly seconds: number;
}

/** Settings of `animation`. */
export interface AnimationOptions {
  /** Columns of the terminal. */
  readonly columns: number;
  /** Text for those who do not see it. */
  readonly title: string;
}

// Pixels. Monospace fonts are at most 0.61 of their size wide.
const FONT = 14;
const COLUMN = 8.54;
const LINE = 20;
const MARGIN = 20;
const RADIUS = 10;
const PROGRESS = 3;

const CLASSES: Readonly<Record<Tone, string>> = {
  bold: "b",
  dim: "d",
  red: "r",
  green: "g",
  yellow: "y",
  cyan: "c",
};

// The page's colours (src/cli/ui/page/page.css), so that both kinds of pictures go together.
const LIGHT = "--bg:#fff;--line:#dfe3e8;--fg:#17202b;--d:#55606e;--r:#b91c1c;--g:#157f3d;--y:#9a5b00;--c:#1d4ed8";
const DARK = "--bg:#18202a;--line:#2b3644;--fg:#e6ebf1;--d:#a3afbd;--r:#ff8a80;--g:#58c983;--y:#e9b04c;--c:#8ab4ff";
const FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace";

/**
 * Returns an SVG that shows the frames one after the other, for ever. It has both themes, no script, and nothing from elsewhere.
 * Readers who want no motion, and programs without animations, see the last frame. Throws if a line is wider than the terminal.
 */
export function animation(frames: readonly Frame[], { columns, title }: AnimationOptions): string {
  const rows = Math.max(0, ...frames.map(({ lines }) => lines.length));
  const width = Math.ceil(columns * COLUMN + 2 * MARGIN);
  const height = rows * LINE + 2 * MARGIN;
  const tones = ["d", "r", "g", "y", "c"].map((tone) => `.${tone}{fill:var(--${tone})}`).join("");
  const bar = `<rect class="p" x="0" y="${height - PROGRESS}" width="${width}" height="${PROGRESS}"/>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" xml:space="preserve">`,
    `<title>${escaped(title)}</title>`,
    `<style>svg{${LIGHT}}@media (prefers-color-scheme:dark){svg{${DARK}}}`,
    `text{font:${FONT}px ${FONTS};fill:var(--fg);white-space:pre}.b{font-weight:700}${tones}`,
    ".bg{fill:var(--bg);stroke:var(--line)}.p{fill:var(--c);transform:scaleX(0)}.f{opacity:0}.f:last-child{opacity:1}",
    `@media (prefers-reduced-motion:no-preference){${motion(frames)}}</style>`,
    `<clipPath id="w"><rect width="${width}" height="${height}" rx="${RADIUS}"/></clipPath>`,
    `<rect class="bg" x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="${RADIUS}"/>`,
    `<g clip-path="url(#w)">${bar}</g>`,
    ...frames.map(({ lines }, index) => `<g class="f" id="f${index}">${texts(lines, columns)}</g>`),
    "</svg>\n",
  ].join("\n");
}

/** Returns the rules that show each frame in its time. */
function motion(frames: readonly Frame[]): string {
  const all = frames.reduce((sum, { seconds }) => sum + seconds, 0);
  const rules = [`@keyframes p{to{transform:none}}.p{animation:p ${round(all)}s linear infinite}`];
  let begin = 0;
  for (const [index, { seconds }] of frames.entries()) {
    const from = `${round((100 * begin) / all)}%`;
    begin += seconds;
    const isLast = index === frames.length - 1;
    const steps = [
      ...(index === 0 ? [] : ["0%{opacity:0}"]),
      `${from}{opacity:1}`,
      isLast ? "to{opacity:1}" : `${round((100 * begin) / all)}%,to{opacity:0}`,
    ];
    rules.push(`@keyframes f${index}{${steps.join("")}}`);
    rules.push(`#f${index}{animation:f${index} ${round(all)}s step-end infinite}`);
  }
  return rules.join("");
}

function round(number: number): number {
  return Math.round(number * 1000) / 1000;
}

function texts(lines: readonly string[], columns: number): string {
  return lines
    .map((line, row) => {
      if (textWidth(line) > columns) {
        throw new Error(`wider than ${columns} columns: ${stripVTControlCharacters(line)}`);
      }
      const spans = spansOf(line).map(({ text, tones }) => {
        const classes = tones.map((tone) => CLASSES[tone]).join(" ");
        return classes === "" ? escaped(text) : `<tspan class="${classes}">${escaped(text)}</tspan>`;
      });
      // The baseline is a quarter of the line above its end.
      const y = MARGIN + row * LINE + 0.75 * LINE;
      return spans.length === 0 ? "" : `<text x="${MARGIN}" y="${y}">${spans.join("")}</text>`;
    })
    .join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
