import { z } from "zod";

/** A host's name: what a label value may hold, since people select by it. */
export const hostName: z.ZodType<string> = z
  .string()
  .max(63, { error: "is longer than 63 characters" })
  .regex(/^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/, {
    error: "must be letters, digits, '-', '_' or '.', with a letter or digit first and last; write e.g. berlin-1",
  });
