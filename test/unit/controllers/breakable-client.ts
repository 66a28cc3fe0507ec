import type { KubeObject } from "../../../src/api/kubernetes.ts";
import type { ClusterClient, WatchOptions } from "../../../src/kube/client.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { quietClient } from "./quiet-client.ts";

/** A client with the objects of one resource, until it can no longer be read. */
export interface BreakableClient {
  readonly client: ClusterClient;
  /** Sends a watch event. */
  readonly change: (object: KubeObject) => void;
  /** Refuses lists and watches with this message from now on, and ends open watches. */
  readonly breakWith: (words: string) => void;
}

/** Notes writes as `create settings`; `creates` is called at each create, and may throw. */
export function breakableClient(
  { plural }: { readonly plural: string },
  items: readonly KubeObject[],
  {
    writes = [],
    creates = () => {},
    denied,
  }: {
    readonly writes?: string[];
    readonly creates?: (() => void) | undefined;
    /** Another resource, which cannot be read. */
    readonly denied?: string | undefined;
  } = {},
): BreakableClient {
  const state: { broken?: string; cut?: () => void } = {};
  const changes: KubeObject[] = [];
  let heard = Promise.withResolvers<void>();
  const check = (resource: Resource<never>): void => {
    const words = state.broken ?? (resource.plural === denied ? "not allowed" : undefined);
    if (words === undefined) return;
    throw kubeError("Forbidden", words, { cluster: "x", verb: "list", resource: resource.plural });
  };
  const note = (verb: string) => async (_resource: unknown, ref: { name?: string; metadata?: { name?: string } }) => {
    writes.push(`${verb} ${ref.name ?? ref.metadata?.name}`);
    if (verb === "create") creates();
    return { metadata: { uid: "new-uid", resourceVersion: "8" } };
  };
  const client = quietClient([], {
    list: (async (resource: Resource<never>) => {
      check(resource);
      return { items: resource.plural === plural ? items : [], resourceVersion: "7", size: 1 };
    }) as never,
    watch: async function* (resource: Resource<never>, { signal, onOpen }: WatchOptions) {
      check(resource);
      onOpen?.();
      const ended = new Promise<void>((resolve) => {
        state.cut = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      while (resource.plural === plural) {
        for (const object of changes.splice(0)) yield { type: "MODIFIED", object, size: 1 };
        const isOver = await Promise.race([ended.then(() => true), heard.promise]);
        if (isOver === true) return;
      }
      await ended;
    } as never,
    create: note("create") as never,
    patch: note("patch") as never,
    delete: note("delete") as never,
  });
  return {
    client,
    change: (object) => {
      changes.push(object);
      heard.resolve();
      heard = Promise.withResolvers();
    },
    breakWith: (words) => {
      state.broken = words;
      state.cut?.();
    },
  };
}
