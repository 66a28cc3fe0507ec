import { z } from "zod";

/** How a queue of the host holds objects of a type back, and says where their pods go. */
export interface QueueRule {
  /** JSON pointer of the boolean that keeps an object from running, e.g. `/spec/suspend`. */
  readonly suspend: string;
  /** JSON pointers of pod templates, to which the queue adds its flavor's node labels; `*` stands for any item of a list or key of a map. */
  readonly templates: readonly string[];
  /** CEL expression over `object`, a copy: it has done work that another member would do again. Default: true. */
  readonly begun?: string;
  /** CEL expression over `object`: a list with the number of pods of each template, in their order. Default: not known. */
  readonly pods?: string;
}

const pointer = z
  .string()
  .regex(/^\/spec(\/[^/]+)+$/)
  .max(256);

export const queueRuleSchema: z.ZodType<QueueRule> = z
  .object({
    suspend: pointer.describe(
      "JSON pointer of the boolean that keeps an object from running, e.g. /spec/suspend: Kueue sets it until it admits the object.",
    ),
    templates: z
      .array(pointer)
      .min(1)
      .max(8)
      .describe(
        "JSON pointers of the object's pod templates, e.g. /spec/replicatedJobs/*/template/spec/template. Kueue adds the node " +
          "labels of the flavor to them, which choose the member. A * stands for any item of a list or key of a map.",
      )
      .meta({ "x-kubernetes-list-type": "atomic" }),
    begun: z
      .string()
      .min(1)
      .max(1024)
      .describe(
        "CEL expression over `object`, the copy: true if it has done work that another member would do again. Then it keeps " +
          "its member, also when Kueue admits it by the flavor of another. Default: it has, once it was admitted.",
      )
      .exactOptional(),
    pods: z
      .string()
      .min(1)
      .max(1024)
      .describe(
        "CEL expression over `object`: a list of integers, the number of pods that each template has while the object runs, in the " +
          "order of the templates. They stay in the quota of a queue that follows members when theirs takes no more pods. Default: " +
          "the number is not known, and their quota does not stay.",
      )
      .exactOptional(),
  })
  .describe(
    "How Kueue holds objects back: one in a queue gets its member once it is admitted. Absent: objects get their member at once.",
  );

/** Validation rules beside the schema. */
export const queueRules: readonly { readonly rule: string; readonly message: string }[] = [
  {
    rule: "!has(self.spec.queue) || self.spec.?exclusive.orValue(false)",
    message: "spec.queue: what a queue admits runs in one member; write exclusive: true beside it",
  },
];
