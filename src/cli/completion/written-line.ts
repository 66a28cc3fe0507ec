import type { Option } from "commander";

export interface WrittenLine {
  readonly plain: readonly string[];
  readonly flags: ReadonlyMap<string, string>;
  /** The flag whose value comes next. */
  readonly open: Option | undefined;
}

/** Reads the words of a command line. An unknown flag counts as one without a value. */
export function readLine(words: readonly string[], options: readonly Option[]): WrittenLine {
  const plain: string[] = [];
  const flags = new Map<string, string>();
  let open: Option | undefined;
  for (const word of words) {
    const [written = "", value] = word.startsWith("--") ? word.split(/=(.*)/s, 2) : [word];
    const option = options.find(({ short, long }) => written === short || written === long);
    if (open !== undefined) {
      flags.set(open.long ?? "", word);
      open = undefined;
    } else if (!word.startsWith("-") || word === "-") plain.push(word);
    else if (value !== undefined) flags.set(written, value);
    else if (option?.required === true) open = option;
  }
  return { plain, flags, open };
}
