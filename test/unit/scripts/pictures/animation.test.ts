import { readFileSync } from "node:fs";
import { join } from "node:path";
import { styleText } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { animation, type Frame } from "../../../../scripts/pictures/animation.ts";
import { ROOT } from "../../../support/legation/cli.ts";

const OPTIONS = { columns: 20, title: "two commands" };
const FRAMES: readonly Frame[] = [
  { lines: ["$ first"], seconds: 1 },
  { lines: ["$ first", "its output"], seconds: 2 },
  { lines: ["$ second"], seconds: 1 },
];
const MOTION = /@media \(prefers-reduced-motion:no-preference\)\{(.*)\}<\/style>/;

/** Returns which frames an SVG shows at a part of its time, by its keyframes, which hold their value until the next one. */
function shownAt(svg: string, part: number): number[] {
  const [, motion = ""] = MOTION.exec(svg) ?? [];
  return [...motion.matchAll(/@keyframes f(\d+)\{((?:[^{}]+\{[^}]*\})*)\}/g)].flatMap(([, frame, steps = ""]) => {
    const values = [...steps.matchAll(/([^{}]+)\{opacity:(\d)\}/g)].flatMap(([, at = "", value]) =>
      at.split(",").map((one) => ({ at: one === "to" ? 100 : Number.parseFloat(one), value })),
    );
    const now = values.toSorted((a, b) => a.at - b.at).findLast(({ at }) => at <= part * 100);
    return now?.value === "1" ? [Number(frame)] : [];
  });
}

test("each frame is shown alone in its time, and the first again after the last", () => {
  const svg = animation(FRAMES, OPTIONS);
  const shown = [0, 0.24, 0.26, 0.74, 0.76, 0.999].map((part) => shownAt(svg, part));
  expect(shown).toEqual([[0], [0], [1], [1], [2], [2]]);
  for (const index of [0, 1, 2]) expect(svg).toContain(`#f${index}{animation:f${index} 4s step-end infinite}`);
});

test("one frame is shown at any time, whatever their number and length", () => {
  const seconds = fc.array(fc.double({ min: 0.1, max: 9, noNaN: true }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(seconds, fc.double({ min: 0, max: 0.99999, noNaN: true }), (lengths, part) => {
      const svg = animation(
        lengths.map((each) => ({ lines: ["x"], seconds: each })),
        OPTIONS,
      );
      expect(shownAt(svg, part)).toHaveLength(1);
    }),
  );
});

test("without motion the last frame is shown", () => {
  const still = animation(FRAMES, OPTIONS).replace(MOTION, "</style>");
  expect(still).not.toContain("animation:");
  expect(still).toContain(".f{opacity:0}.f:last-child{opacity:1}");
  const frames = [...still.matchAll(/<g class="f" id="f(\d)">/g)].map(([, index]) => index);
  expect(frames).toEqual(["0", "1", "2"]);
  expect(still).toMatch(/<g class="f" id="f2">.*second.*<\/g>\n<\/svg>\n$/);
});

test("colours of the terminal become those of the theme", () => {
  const line = `${styleText("red", "trouble:", { validateStream: false })} gone`;
  const svg = animation([{ lines: [line], seconds: 1 }], OPTIONS);
  expect(svg).toContain('<tspan class="r">trouble:</tspan> gone</text>');
  expect(svg).toContain(".r{fill:var(--r)}");
  const [light, dark] = svg.split("@media (prefers-color-scheme:dark)");
  for (const theme of [light, dark]) expect(theme).toMatch(/--bg:#.*--r:#/);
});

test("characters of XML are text", () => {
  const svg = animation([{ lines: ['<none> & "x"'], seconds: 1 }], { ...OPTIONS, title: "a < b" });
  expect(svg).toContain("&lt;none&gt; &amp; &quot;x&quot;</text>");
  expect(svg).toContain("<title>a &lt; b</title>");
});

test("the picture is as high as its longest frame, and empty lines take room", () => {
  const height = (lines: readonly string[]): number =>
    Number(/ height="(\d+)" role/.exec(animation([{ lines, seconds: 1 }, ...FRAMES], OPTIONS))?.[1]);
  expect(height(["a", "", "b", "c"]) - height(["a", "", "b"])).toBe(20);
  expect(animation([{ lines: ["", "b"], seconds: 1 }], OPTIONS)).toMatch(/<text x="20" y="55">b<\/text>/);
});

test("a line that the terminal would cut is refused", () => {
  const line = styleText("green", "x".repeat(21), { validateStream: false });
  expect(() => animation([{ lines: [line], seconds: 1 }], OPTIONS)).toThrow(`wider than 20 columns: ${"x".repeat(21)}`);
});

test("the README's picture is small, has no script, and loads nothing", () => {
  const svg = readFileSync(join(ROOT, "docs/pictures/twelve-seconds.svg"), "utf8");
  expect(svg.length).toBeLessThan(150_000);
  expect(svg).not.toMatch(/<script|<image|<foreignObject|@import|@font-face|href=|\son\w+=/i);
  expect([...svg.matchAll(/url\(([^)]*)\)/g)].map(([, target]) => target)).toEqual(["#w"]);
  const [, seconds = ""] = /animation:p ([\d.]+)s/.exec(svg) ?? [];
  expect(Number(seconds)).toBeGreaterThan(10);
  expect(Number(seconds)).toBeLessThan(16);
});
