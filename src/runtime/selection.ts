import type { ListOptions } from "../kube/client.ts";

/** The objects of a resource that are listed and watched. */
export type Selection = Pick<ListOptions, "namespace" | "labelSelector" | "fieldSelector">;

/** Returns the selection alone; keys without a value are left out. */
export function selectionOf({ namespace, labelSelector, fieldSelector }: Selection): Selection {
  return {
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  };
}
