import { VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";

/** The member whose virtual node the pod's node selector names by its label, as Kueue writes it for a flavor; undefined: it names none. */
export function selectedMember({ spec }: Pod): string | undefined {
  return spec?.nodeSelector?.[VIRTUAL_NODE_LABEL];
}

/** What a node selector asks of a member's own nodes, which do not have the label of the virtual one; undefined: nothing. */
export function selectorInMember(
  nodeSelector: Readonly<Record<string, string>> | undefined,
): Record<string, string> | undefined {
  const { [VIRTUAL_NODE_LABEL]: _, ...kept } = nodeSelector ?? {};
  return Object.keys(kept).length === 0 ? undefined : kept;
}
