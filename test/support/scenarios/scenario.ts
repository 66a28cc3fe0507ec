import type { Pod } from "../../../src/api/kubernetes.ts";
import type { MemberName } from "./members.ts";
import type { Workload } from "./objects.ts";

/** The expected placement of one object's pods. */
export interface Expected {
  /** The number of pods per member. */
  readonly in?: Partial<Readonly<Record<MemberName, number>>>;
  /** The number of pods in these members together. */
  readonly among?: { readonly members: readonly MemberName[]; readonly pods: number };
  /** The number of pods, all in any one member. */
  readonly together?: number;
  /** Message of each waiting pod; `{namespace}` and `{scheduler}` stand for values that tests cannot know. */
  readonly waits?: string | RegExp;
  /** The number of waiting pods; default 1 if there is a reason. */
  readonly waiting?: number;
  /** Admission's message. */
  readonly refused?: RegExp;
}

/** The state of all members during a step. */
export type Stage = "well" | "trouble";

/** Objects that are made once those of the steps before have their places. */
export interface Step {
  /** Default: all members are well. */
  readonly stage?: Stage;
  readonly make?: readonly (Pod | Workload)[];
  /** Expectations by object name, of earlier steps, too. */
  readonly expect: Readonly<Record<string, Expected>>;
}

/** A situation, and the placement of pods in it. */
export interface Scenario {
  /** A sentence: the test's name. */
  readonly shows: string;
  /** Settings of a namespace of its own. Default: the shared one, without settings. */
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
