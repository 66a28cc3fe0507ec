import type { z } from "zod";
import { oncePerGroup, type ServedType } from "./discovery.ts";
import { refusing } from "./input.ts";

/** Returns the types that a word names, as kubectl resolves it: category, plural, singular, kind or short name, with group. */
export function typesNamed(served: readonly ServedType[], word: string): readonly ServedType[] {
  const wanted = word.toLowerCase();
  const inCategory = served.filter(({ categories }) => categories.includes(wanted));
  if (inCategory.length > 0) return oncePerGroup(inCategory);
  const [name = "", ...rest] = wanted.split(".");
  const suffix = rest.join(".");
  const candidates = [
    served.filter(({ resource: { version, group } }) => suffix === `${version}.${group}`),
    served.filter(({ resource: { group } }) => suffix === "" || suffix === group),
    // As kubectl does, `deployments.app` finds the group `apps`.
    served.filter(({ resource: { group } }) => suffix !== "" && group.startsWith(suffix)),
  ];
  for (const among of candidates) {
    const found = among.find((type) => hasName(type, name)) ?? among.find((type) => type.shortNames.includes(name));
    if (found !== undefined) return [found];
  }
  return [];
}

export function namesOfTypes(served: readonly ServedType[]): readonly string[] {
  return served.flatMap(({ resource, singular }) => [resource.plural, singular, resource.kind.toLowerCase()]);
}

function hasName({ resource, singular }: ServedType, name: string): boolean {
  return [resource.plural, singular, resource.kind.toLowerCase()].includes(name);
}

/** A word for a type, and the names of the wanted objects; no names stand for all objects. */
export interface TypeQuery {
  readonly word: string;
  readonly names: readonly string[];
}

/** Reads `pods,services [NAME...]` or `pod/web service/web ...`. Adds an issue, and returns none, for anything else. */
export function typeQueries(
  type: string,
  names: readonly string[],
  context: z.RefinementCtx,
  example: string,
): readonly TypeQuery[] {
  const refuse = (path: string, message: string): readonly TypeQuery[] => {
    refusing(context)(path, message);
    return [];
  };
  if (!type.includes("/")) {
    const slashed = names.find((name) => name.includes("/"));
    if (slashed !== undefined) {
      return refuse("names", `${JSON.stringify(slashed)} is no name; write TYPE NAME..., or TYPE/NAME for each object`);
    }
    const words = type.split(",").map((word) => word.trim());
    if (words.includes("")) return refuse("type", `${JSON.stringify(type)} names no type; write e.g. ${example}`);
    return words.map((word) => ({ word, names }));
  }
  const byWord = new Map<string, string[]>();
  for (const each of [type, ...names]) {
    const [, word, name] = /^([^/,]+)\/([^/]+)$/.exec(each) ?? [];
    if (word === undefined || name === undefined) {
      return refuse("type", `${JSON.stringify(each)} is not TYPE/NAME; write e.g. pod/web-0`);
    }
    byWord.set(word, [...(byWord.get(word) ?? []), name]);
  }
  return [...byWord].map(([word, wanted]) => ({ word, names: wanted }));
}
