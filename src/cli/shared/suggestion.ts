import { closestName } from "../../api/closest-key.ts";

/** Returns `did you mean west?` for a misspelled name. Undefined if no known name is near. */
export function didYouMean(name: string, known: readonly string[]): string | undefined {
  const closest = closestName(name.toLowerCase(), known);
  return closest === undefined || closest === name ? undefined : `did you mean ${closest}?`;
}
