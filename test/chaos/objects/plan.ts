/** Deeds of authors with whole objects in a test. */
export const OBJECT_DEEDS = [
  "give an object",
  "change an object",
  "place an object elsewhere",
  "delete an object",
  "take an object back, or give it again",
  "run a whole Job",
  "delete a whole Job",
] as const;

/** Deeds that a run of its own has, too, some of clients of members. */
export const OTHER_OBJECT_DEEDS = [
  "delete an object that members keep",
  "create an object again",
  "adopt a member's object",
  "change a copy by hand",
  "prune in a member what carries a tool's marks",
  "change a status in a member",
  "relabel a Cluster",
  "run a pod with a whole ConfigMap",
  "divide a whole Job",
  "suspend a whole Job, or resume it",
  "delete the copy of a whole Job",
  "restore an object under another name",
  "restore a whole Job under another name",
] as const;

export type ObjectDeed = (typeof OBJECT_DEEDS)[number] | (typeof OTHER_OBJECT_DEEDS)[number];

/** Faults of whole objects alone. */
export const OBJECT_FAULTS = ["DelegatedType deleted for a while", "definition missing in a member"] as const;

export type ObjectFault = (typeof OBJECT_FAULTS)[number];

/** Reports whether a deed is about whole objects. */
export function isOnObjects(deed: string): deed is ObjectDeed {
  return [...OBJECT_DEEDS, ...OTHER_OBJECT_DEEDS].some((one) => one === deed);
}
