import type { Rule } from "./candidate.ts";

/** Where the other pods of a pod's group are. */
export interface GroupFacts {
  /** The group, for people. */
  readonly text: string;
  readonly home?: string;
  /** `namespace/name` of the pod that finds the group its place. */
  readonly first?: string;
  /** Members that may have pods of the group, and have not been read. */
  readonly unread: readonly string[];
}

/** All pods of a group go to one member; until it is known, one pod alone looks for it. */
export function groupRule({ text, home, first, unread }: GroupFacts): Rule {
  return {
    refusal: ({ name }) => {
      if (home !== undefined) {
        return name === home ? undefined : { reason: "OtherGroup", message: `${text} runs in ${home}` };
      }
      if (first !== undefined) {
        return { reason: "OtherGroup", message: `${text} goes where pod ${first} finds a place first` };
      }
      return unread.length === 0
        ? undefined
        : { reason: "OtherGroup", message: `${text} may be in ${unread.join(" or ")}, which has not answered yet` };
    },
  };
}
