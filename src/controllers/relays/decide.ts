import { jsonEqual } from "../../api/json.ts";
import type { EndpointSlice, Service, Stored } from "../../api/kubernetes.ts";
import { relaysInMembers } from "../../api/relay.ts";
import type { Decision } from "../../runtime/requeue.ts";

/** A relayed Service, or the slices that are left of one. */
export interface ObservedRelay {
  /** Undefined: the Service is not relayed any more. */
  readonly service: Stored<Service> | undefined;
  readonly wanted: readonly EndpointSlice[];
  readonly slices: readonly Stored<EndpointSlice>[];
  /** Why connections reach no pod, for the Service's author. */
  readonly problem: string | undefined;
  /** When slices may be written again after a refusal; epoch ms. */
  readonly heldUntil: number | undefined;
}

export type RelayAction =
  | { readonly type: "create" | "replace"; readonly slice: EndpointSlice }
  | { readonly type: "delete"; readonly slice: Stored<EndpointSlice> }
  | { readonly type: "tell"; readonly service: Stored<Service>; readonly message: string };

/** Brings the slices of a relayed Service up to date, and tells its author why it leads nowhere. */
export function decide(observed: ObservedRelay): Decision<RelayAction> {
  const { service, problem } = observed;
  const writes = writesOf(observed);
  const held = writes.length === 0 ? undefined : observed.heldUntil;
  const tells: RelayAction[] =
    service === undefined || problem === undefined ? [] : [{ type: "tell", service, message: problem }];
  const actions = [...(held === undefined ? writes : []), ...tells];
  const outcome = held === undefined ? (writes.length > 0 ? "written" : "unchanged") : "held";
  return { outcome, actions, ...(held === undefined ? {} : { requeueAt: held }) };
}

function writesOf({ wanted, slices }: ObservedRelay): RelayAction[] {
  const deleted = slices.filter(({ metadata }) => wanted.every((each) => each.metadata?.name !== metadata.name));
  return [
    ...wanted.flatMap((slice): RelayAction[] => {
      const there = slices.find(({ metadata }) => metadata.name === slice.metadata?.name);
      if (there === undefined) return [{ type: "create", slice }];
      const { resourceVersion } = there.metadata;
      if (isSame(there, slice)) return [];
      return [{ type: "replace", slice: { ...slice, metadata: { ...slice.metadata, resourceVersion } } }];
    }),
    ...deleted.map((slice): RelayAction => ({ type: "delete", slice })),
  ];
}

function isSame(there: Stored<EndpointSlice>, wanted: EndpointSlice): boolean {
  const owner = ({ metadata }: EndpointSlice): string | undefined => metadata?.ownerReferences?.[0]?.uid;
  const content = (slice: EndpointSlice): unknown => [slice.endpoints ?? [], slice.ports ?? [], relaysInMembers(slice)];
  return owner(there) === owner(wanted) && jsonEqual(content(there), content(wanted));
}
