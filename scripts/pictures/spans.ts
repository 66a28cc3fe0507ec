import { stripVTControlCharacters } from "node:util";

export type Tone = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** A part of a terminal's line with one style. */
export interface Span {
  readonly text: string;
  readonly tones: readonly Tone[];
}

// Select Graphic Rendition (ECMA-48): the codes that Legation's commands print.
const WEIGHTS: Readonly<Record<string, Tone>> = { "1": "bold", "2": "dim" };
const COLOURS: Readonly<Record<string, Tone>> = { "31": "red", "32": "green", "33": "yellow", "36": "cyan" };
const RENDITION = /\p{Control}\[([\d;]*)m/u;

/** Splits a line into parts by its colours. Other control sequences are left out. */
export function spansOf(line: string): Span[] {
  const spans: Span[] = [];
  let weight: Tone | undefined;
  let colour: Tone | undefined;
  // Texts and codes take turns.
  for (const [index, part] of line.split(RENDITION).entries()) {
    if (index % 2 === 0) {
      const text = stripVTControlCharacters(part);
      const tones = [weight, colour].filter((tone) => tone !== undefined);
      if (text !== "") spans.push({ text, tones });
      continue;
    }
    for (const code of part.split(";")) {
      if (code === "" || code === "0") [weight, colour] = [undefined, undefined];
      else if (code === "22") weight = undefined;
      else if (code === "39") colour = undefined;
      else [weight, colour] = [WEIGHTS[code] ?? weight, COLOURS[code] ?? colour];
    }
  }
  return spans;
}
