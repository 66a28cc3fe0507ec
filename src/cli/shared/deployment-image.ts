import { z } from "zod";

/** Label with the version of the command line or chart that installed a Deployment. */
export const VERSION_LABEL = "app.kubernetes.io/version";

export interface Container {
  readonly image?: string | undefined;
  readonly args?: readonly string[] | undefined;
}

interface DeploymentSpec {
  readonly template: { readonly spec: { readonly containers: readonly Container[] } };
}

const container = z.looseObject({ image: z.string().optional(), args: z.array(z.string()).optional() });
export const deploymentSpec: z.ZodType<DeploymentSpec> = z.looseObject({
  template: z.looseObject({ spec: z.looseObject({ containers: z.array(container) }) }),
});

const deployment = z.looseObject({ spec: deploymentSpec });

/** Returns the image of a Deployment's first container. Undefined for another object. */
export function imageOf(object: unknown): string | undefined {
  return deployment.safeParse(object).data?.spec.template.spec.containers[0]?.image;
}

const SHARDS_ARGUMENT = "--shards=";

/** Returns the number of shards that a Deployment's process is told. */
export function shardsOf(object: unknown): number {
  const { args = [] } = deployment.safeParse(object).data?.spec.template.spec.containers[0] ?? {};
  return Number(args.find((arg) => arg.startsWith(SHARDS_ARGUMENT))?.slice(SHARDS_ARGUMENT.length) ?? 1);
}

/** Returns the arguments that tell a process the number of shards. A single one is the default. */
export function shardsArguments(shards: number): readonly string[] {
  return shards === 1 ? [] : [`${SHARDS_ARGUMENT}${shards}`];
}
