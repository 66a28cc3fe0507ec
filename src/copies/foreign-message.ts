/** The clause by which messages tell the objects that a pod names from others. */
export const NEEDED = ", which the pod needs";

/** Returns why a member cannot have a copy in whose place there is an object of another owner. */
export function foreignMessage(kind: string, name: string, clause: string): string {
  const there = "is there already and was not made by Legation for this host";
  return clause === "" ? `${kind} ${name} ${there}` : `${kind} ${name}${clause}, ${there}`;
}
