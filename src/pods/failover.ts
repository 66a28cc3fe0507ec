import { FAILOVER_ANNOTATION, FAILOVER_NEVER } from "../api/keys.ts";
import type { Pod, PodSpec, Toleration } from "../api/kubernetes.ts";

const LOST_NODE_TAINTS: readonly string[] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/** Returns the proxy with endless tolerations for lost nodes (`failover: never`). Idempotent. */
export function withEndlessTolerations(proxy: Pod): Pod {
  const all = proxy.spec?.tolerations ?? [];
  const missing = LOST_NODE_TAINTS.filter((key) => !all.some((one) => one.key === key && isEndless(one)));
  const tolerations = [
    ...all.filter((one) => !isOfLostNodes(one) || isEndless(one)),
    ...missing.map((key) => ({ key, operator: "Exists", effect: "NoExecute" })),
  ];
  return { ...proxy, spec: { containers: [], ...proxy.spec, tolerations } };
}

/** Reports whether admission gave the pod endless tolerations for lost nodes. */
export function hasEndlessTolerations({ metadata, spec }: Pod): boolean {
  const endless = (spec?.tolerations ?? []).filter(isEndless).map(({ key }) => key);
  return (
    metadata?.annotations?.[FAILOVER_ANNOTATION] === FAILOVER_NEVER &&
    LOST_NODE_TAINTS.every((key) => endless.includes(key))
  );
}

/** Leaves out those for lost virtual nodes: the member's admission adds its own. */
export function forwardedTolerations({ metadata, spec }: Pod): Toleration[] {
  const stays = metadata?.annotations?.[FAILOVER_ANNOTATION] === FAILOVER_NEVER;
  return (spec?.tolerations ?? []).filter(
    (toleration) => !isDefaultToleration(toleration) && !(stays && isOfLostNodes(toleration)),
  );
}

/** Endless tolerations of `failover: never` never follow: the delegate would never leave a lost node of the member. */
export function addedTolerations(proxy: Pod, { tolerations = [] }: PodSpec): Toleration[] {
  return forwardedTolerations(proxy).filter(
    (one) => !isEndless(one) || tolerations.some((other) => other.key === one.key && isEndless(other)),
  );
}

/** Reports whether the DefaultTolerationSeconds admission plugin adds the toleration on every cluster. */
function isDefaultToleration(toleration: Toleration): boolean {
  const { operator, tolerationSeconds, value } = toleration;
  return isOfLostNodes(toleration) && operator === "Exists" && tolerationSeconds === 300 && value === undefined;
}

function isEndless(toleration: Toleration): boolean {
  return isOfLostNodes(toleration) && toleration.operator === "Exists" && toleration.tolerationSeconds === undefined;
}

function isOfLostNodes({ key = "", effect }: Toleration): boolean {
  return LOST_NODE_TAINTS.includes(key) && effect === "NoExecute";
}
