import type { AnyObject } from "../api/delegated-type.ts";
import { isJsonObject, type JsonObject, jsonEqual, valueAt } from "../api/json.ts";
import { EXPORTED_ANNOTATION } from "../api/keys.ts";
import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { hasNodePorts, specOf, specOfType } from "../api/service-fields.ts";
import { type MemberCopy, statusFromCopies, statusOf } from "./object-status.ts";

/** Returns a copy's fields: an override may have given the Service another type. */
export function serviceFields(fields: AnyObject): AnyObject {
  return isJsonObject(fields.spec) ? { ...fields, spec: specOfType(fields.spec) } : fields;
}

/**
 * Returns the Service to apply to a copy. The API server releases node ports with a change of the type only if the ports stay
 * the same (registry/core/service/strategy.go, dropTypeDependentFields), so they are given up explicitly.
 */
export function serviceToApply(wanted: AnyObject, copy: Stored<AnyObject>): AnyObject {
  const { type, ports } = specOf(wanted);
  if (hasNodePorts(type) || !hasNodePorts(specOf(copy).type) || !Array.isArray(ports)) return wanted;
  const released = ports.map((port) => (isJsonObject(port) ? { ...port, nodePort: 0 } : port));
  return { ...wanted, spec: { ...specOf(wanted), ports: released } };
}

/** Returns the annotations of a copy by which other controllers of Legation know it. */
export function serviceMarks({ metadata }: KubeObject): Readonly<Record<string, string>> {
  const exported = metadata?.annotations?.[EXPORTED_ANNOTATION];
  return exported === undefined ? {} : { [EXPORTED_ANNOTATION]: exported };
}

/** Returns the status of a Service from those of its copies: the addresses of the load balancers of all members that are not lost. */
export function serviceStatusFrom(service: Stored<AnyObject>, holders: readonly MemberCopy[]): JsonObject | undefined {
  const status = statusFromCopies(service, holders);
  if (status === undefined) return undefined;
  // The API server refuses addresses of other types.
  const ingress = specOf(service).type === "LoadBalancer" ? ingressOf(holders) : [];
  return { ...status, loadBalancer: ingress.length === 0 ? {} : { ingress } };
}

function ingressOf(holders: readonly MemberCopy[]): unknown[] {
  const all = holders
    .toSorted((a, b) => (a.member < b.member ? -1 : 1))
    .filter(({ isLost }) => !isLost)
    .flatMap(({ copy }) => {
      const ingress = valueAt(statusOf(copy), ["loadBalancer", "ingress"]);
      return Array.isArray(ingress) ? ingress : [];
    });
  return all.filter((one, index) => all.findIndex((other) => jsonEqual(one, other)) === index);
}
