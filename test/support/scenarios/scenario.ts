import type { Pod } from "../../../src/api/kubernetes.ts";
import type { MemberName } from "./members.ts";
import type { Workload } from "./objects.ts";

/** The expected placement of one object's pods. */
export interface Expected {
  /** How many pods each member has. */
  readonly in?: Partial<Readonly<Record<MemberName, number>>>;
  /** So many pods, in these members only, however they share them. */
  readonly among?: { readonly members: readonly MemberName[]; readonly pods: number };
  /** So many pods, all in one member, whichever. */
  readonly together?: number;
  /** Message of each waiting pod; `{namespace}` and `{scheduler}` stand for values that tests cannot know. */
  readonly waits?: string | RegExp;
  /** How many pods wait; default 1 where any does. */
  readonly waiting?: number;
  /** Why the object is refused at admission. */
  readonly refused?: RegExp;
}

/** How all members are while a step is taken. */
export type Stage = "well" | "trouble";

/** Objects that are made once those of the steps before have their places. */
export interface Step {
  /** Default: all members are well. */
  readonly stage?: Stage;
  readonly make?: readonly (Pod | Workload)[];
  /** By the name of the object, also of one of an earlier step. */
  readonly expect: Readonly<Record<string, Expected>>;
}

/** A situation, and the placement of pods in it. */
export interface Scenario {
  /** A sentence: the test's name. */
  readonly shows: string;
  /** A namespace of its own with these; absent: the one that all share, for which nobody says anything. */
  readonly namespace?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly steps: readonly Step[];
}

/** A scenario of one step. */
export function scenario(
  shows: string,
  make: readonly (Pod | Workload)[],
  expect: Step["expect"],
  more: Pick<Scenario, "namespace"> & Pick<Step, "stage"> = {},
): Scenario {
  const { namespace, stage } = more;
  return {
    shows,
    ...(namespace === undefined ? {} : { namespace }),
    steps: [{ make, expect, ...(stage === undefined ? {} : { stage }) }],
  };
}
