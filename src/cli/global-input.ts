import { z } from "zod";
import { toggle } from "./flags.ts";
import { outputFormat } from "./output.ts";
import type { ClusterChoice } from "./session.ts";

/** Input of every subcommand: the host cluster and the output format. */
export interface GlobalInput extends ClusterChoice {
  readonly output: "text" | "json" | "yaml";
  readonly verbose: boolean;
}

/** Schema of one subcommand's own flags together with those that all have. */
export function withGlobals<Shape extends z.ZodRawShape>(
  shape: Shape,
): z.ZodType<z.output<z.ZodObject<Shape>> & GlobalInput> {
  const globals = z.object({
    kubeconfig: z.string().optional(),
    context: z.string().optional(),
    output: outputFormat,
    verbose: toggle,
  });
  return z.intersection(z.object(shape), globals);
}
