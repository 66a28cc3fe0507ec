import type { Container, Pod } from "../../api/kubernetes.ts";
import type { Amounts } from "../../api/quantity.ts";
import { podRequests } from "../../placement/requests.ts";

/** The pod's limits are summed as its requests are. */
export function podLimits({ spec }: Pod): Amounts {
  if (spec === undefined) return {};
  const { containers, initContainers = [], resources } = spec;
  const limited = (container: Container): Container => {
    const { resources: own, ...rest } = container;
    return own?.limits === undefined ? rest : { ...rest, resources: { requests: own.limits } };
  };
  const { resources: _, ...others } = spec;
  return podRequests({
    spec: {
      ...others,
      containers: containers.map(limited),
      initContainers: initContainers.map(limited),
      ...(resources?.limits === undefined ? {} : { resources: { requests: resources.limits } }),
    },
  });
}
