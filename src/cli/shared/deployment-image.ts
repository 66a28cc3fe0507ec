import { z } from "zod";

/** Label with the version of the command line or chart that installed a Deployment. */
export const VERSION_LABEL = "app.kubernetes.io/version";

interface DeploymentSpec {
  readonly template: { readonly spec: { readonly containers: readonly { readonly image?: string | undefined }[] } };
}

const container = z.looseObject({ image: z.string().optional() });
export const deploymentSpec: z.ZodType<DeploymentSpec> = z.looseObject({
  template: z.looseObject({ spec: z.looseObject({ containers: z.array(container) }) }),
});

const deployment = z.looseObject({ spec: deploymentSpec });

/** Returns the image of a Deployment's first container. Undefined for another object. */
export function imageOf(object: unknown): string | undefined {
  return deployment.safeParse(object).data?.spec.template.spec.containers[0]?.image;
}
