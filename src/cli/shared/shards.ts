import type { Option } from "commander";
import { z } from "zod";
import { MOST_SHARDS } from "../../api/shards.ts";
import { flag } from "./command.ts";

export const SHARDS_FLAG: Option = flag(
  "--shards <number>",
  `parts that the namespaces are divided into, at most ${MOST_SHARDS}: controllers with the same number share them out; ` +
    "write the same for webhook and controller (default: 1)",
);

export const shards: z.ZodType<number> = z.coerce
  .number()
  .int({ error: "is no whole number" })
  .min(1, { error: "must be 1 or more" })
  .max(MOST_SHARDS, { error: `must be ${MOST_SHARDS} or less` });
