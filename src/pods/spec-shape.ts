import { z } from "zod";
import type { PodSpec } from "../api/kubernetes.ts";
import { amounts } from "../api/quantity.ts";

const resources = z.looseObject({ requests: amounts.nullish(), limits: amounts.nullish() });
const reference = z.looseObject({ name: z.string().nullish() });
const container = z.looseObject({
  name: z.string(),
  resources: resources.nullish(),
  env: z
    .array(
      z.looseObject({
        name: z.string(),
        valueFrom: z.looseObject({ configMapKeyRef: reference.nullish(), secretKeyRef: reference.nullish() }).nullish(),
      }),
    )
    .nullish(),
  envFrom: z.array(z.looseObject({ configMapRef: reference.nullish(), secretRef: reference.nullish() })).nullish(),
});
const volume = z.looseObject({
  name: z.string(),
  configMap: reference.nullish(),
  secret: z.looseObject({ secretName: z.string().nullish() }).nullish(),
  persistentVolumeClaim: z.looseObject({ claimName: z.string() }).nullish(),
  projected: z.looseObject({ sources: z.array(z.looseObject({})).nullish() }).nullish(),
});
const expressions = z.array(
  z.looseObject({ key: z.string(), operator: z.string(), values: z.array(z.string()).nullish() }),
);
const nodeTerm = z.looseObject({ matchExpressions: expressions.nullish(), matchFields: expressions.nullish() });
const podTerms = z.looseObject({
  requiredDuringSchedulingIgnoredDuringExecution: z.array(z.looseObject({})).nullish(),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(z.looseObject({ podAffinityTerm: z.looseObject({}) }))
    .nullish(),
});
const affinity = z.looseObject({
  nodeAffinity: z
    .looseObject({
      requiredDuringSchedulingIgnoredDuringExecution: z.looseObject({ nodeSelectorTerms: z.array(nodeTerm) }).nullish(),
      preferredDuringSchedulingIgnoredDuringExecution: z.array(z.looseObject({ preference: nodeTerm })).nullish(),
    })
    .nullish(),
  podAffinity: podTerms.nullish(),
  podAntiAffinity: podTerms.nullish(),
});
const spreadConstraint = z.looseObject({
  topologyKey: z.string(),
  labelSelector: z.looseObject({ matchExpressions: expressions.nullish() }).nullish(),
  matchLabelKeys: z.array(z.string()).nullish(),
});
const podSpecFields = z.looseObject({
  containers: z.array(container).min(1),
  initContainers: z.array(container).nullish(),
  nodeSelector: z.record(z.string(), z.string()).nullish(),
  tolerations: z.array(z.looseObject({})).nullish(),
  volumes: z.array(volume).nullish(),
  imagePullSecrets: z.array(reference).nullish(),
  affinity: affinity.nullish(),
  topologySpreadConstraints: z.array(spreadConstraint).nullish(),
  schedulingGates: z.array(z.looseObject({ name: z.string() })).nullish(),
  overhead: amounts.nullish(),
  resources: resources.nullish(),
});
/** Returns type problems of the fields that decisions read; the API server checks the rest. */
export function shapeProblems(spec: unknown): string[] {
  const { issues = [] } = podSpecFields.safeParse(spec).error ?? {};
  return issues.map(({ path, message }) => `${["spec", ...path].join(".")}: ${message}`);
}

/** Other fields pass through. */
export const podSpec: z.ZodType<PodSpec> = z.custom<PodSpec>().superRefine((value, context) => {
  for (const { path, message } of podSpecFields.safeParse(value).error?.issues ?? []) {
    context.addIssue({ code: "custom", path: [...path], message });
  }
});
