import { basename, join } from "node:path";

/** A file or folder that a stage copies into the image. */
export interface Copied {
  /** The stage that has it; undefined: it is of the sources. */
  readonly stage: string | undefined;
  readonly from: string;
  /** Absolute, in the image. */
  readonly to: string;
}

/** Returns the copies of a Dockerfile's last stage. Throws for an instruction that is not understood. */
export function copiesOf(dockerfile: string): Copied[] {
  const lines = dockerfile.split("\n");
  const stage = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")));
  const folder = instruction(stage, "WORKDIR");
  return stage
    .filter((line) => /^(COPY|ADD)\b/.test(line))
    .flatMap((line) => {
      const parsed = /^COPY (?:--from=(?<stage>\S+) )?(?<sources>[^-[\\][^\\]*) (?<target>[^\\\s]+)$/.exec(line);
      const { sources, target } = parsed?.groups ?? {};
      if (sources === undefined || target === undefined)
        throw new Error(`Dockerfile: "${line}" is not understood here`);
      return sources.split(/\s+/).map((from) => ({
        stage: parsed?.groups?.stage,
        from,
        to: join(folder, target.endsWith("/") ? join(target, basename(from)) : target),
      }));
    });
}

/** Returns the argument of the last such instruction; empty without one. */
export function instruction(lines: readonly string[], name: string): string {
  return lines.findLast((line) => line.startsWith(`${name} `))?.slice(name.length + 1) ?? "";
}
