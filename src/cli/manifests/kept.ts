import { z } from "zod";
import type { KubeObject } from "../../api/kubernetes.ts";
import type { Manifest } from "./load.ts";

const fields = z.record(z.string(), z.unknown());
const managed = z.array(z.looseObject({ manager: z.string().optional(), fieldsV1: fields.optional() }));
const container = z.looseObject({ name: z.string(), resources: z.unknown().optional() });
const deployment = z.looseObject({
  spec: z.looseObject({
    replicas: z.number().optional(),
    template: z.looseObject({ spec: z.looseObject({ containers: z.array(container) }) }),
  }),
});

/**
 * A Deployment's manifest with the replicas and the resources of containers that somebody gave the installed one by other
 * means (`kubectl scale`, `kubectl edit`, an autoscaler): an upgrade must not take memory away that a large host needs.
 * Other manifests stay as they are. Who set a field is read from `metadata.managedFields`.
 */
export function keepSizes(manifest: Manifest, installed: KubeObject | undefined, installer: string): Manifest {
  const wanted = deployment.safeParse(manifest);
  const found = deployment.safeParse(installed);
  if (manifest.kind !== "Deployment" || !wanted.success || !found.success) return manifest;
  const others = managed
    .parse(installed?.metadata?.managedFields ?? [])
    .filter(({ manager }) => manager !== installer)
    .map(({ fieldsV1 }) => fieldsV1);
  const setByOthers = (...path: string[]): boolean => others.some((owned) => has(owned, path));
  const { spec } = wanted.data;
  const live = new Map(found.data.spec.template.spec.containers.map((each) => [each.name, each]));
  const containers = spec.template.spec.containers.map((each) => {
    const inContainer = ["f:spec", "f:template", "f:spec", "f:containers", `k:${JSON.stringify({ name: each.name })}`];
    const resources = live.get(each.name)?.resources;
    return resources !== undefined && setByOthers(...inContainer, "f:resources") ? { ...each, resources } : each;
  });
  const { replicas } = found.data.spec;
  return {
    ...manifest,
    spec: {
      ...spec,
      ...(replicas !== undefined && setByOthers("f:spec", "f:replicas") ? { replicas } : {}),
      template: { ...spec.template, spec: { ...spec.template.spec, containers } },
    },
  };
}

function has(owned: unknown, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined) return true;
  const inner = fields.safeParse(owned).data?.[first];
  return inner !== undefined && has(inner, rest);
}
