import { JOBS } from "./jobs/type.ts";
import type { Maker, WholeType } from "./type.ts";

/** The built-in types that members get whole. `adapters.ts` does not compile without an engine for each. */
export const BUILT_IN: Readonly<Record<"jobs", WholeType>> = { jobs: JOBS };
export const WHOLE_TYPES: readonly WholeType[] = Object.values(BUILT_IN);

/** Returns the built-in type of a group and kind, also of one whose templates make objects of it. */
export function wholeTypeOf(of: {
  readonly group: string;
  readonly kind: string;
}): { readonly type: WholeType; readonly maker?: Maker } | undefined {
  const isOf = ({ resource: { group, kind } }: Maker | WholeType): boolean => group === of.group && kind === of.kind;
  for (const type of WHOLE_TYPES) {
    if (isOf(type)) return { type };
    const maker = type.makers.find(isOf);
    if (maker !== undefined) return { type, maker };
  }
  return undefined;
}
