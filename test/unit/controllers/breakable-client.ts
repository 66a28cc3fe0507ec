import type { KubeObject } from "../../../src/api/kubernetes.ts";
import type { ClusterClient, WatchEvent, WatchOptions } from "../../../src/kube/client.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { answerOf, listing, writing } from "../../support/builders/answers.ts";
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
  const check = (resource: { readonly plural: string }): void => {
    const words = state.broken ?? (resource.plural === denied ? "not allowed" : undefined);
    if (words === undefined) return;
    throw kubeError("Forbidden", words, { cluster: "x", verb: "list", resource: resource.plural });
  };
  const listed = listing((asked) => (asked === plural ? items : []), "7");
  const client = quietClient([], {
    list: async (resource, options) => {
      check(resource);
      return listed(resource, options);
    },
    watch: async function* <T extends KubeObject>(
      resource: Resource<T>,
      { signal, onOpen }: WatchOptions,
    ): AsyncGenerator<WatchEvent<T>> {
      check(resource);
      onOpen?.();
      const ended = new Promise<void>((resolve) => {
        state.cut = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      while (resource.plural === plural) {
        for (const object of changes.splice(0)) yield { type: "MODIFIED", object: answerOf<T>(object), size: 1 };
        const isOver = await Promise.race([ended.then(() => true), heard.promise]);
        if (isOver === true) return;
      }
      await ended;
    },
    ...writing(({ verb, name }) => {
      writes.push(`${verb} ${name}`);
      if (verb === "create") creates();
      return { metadata: { uid: "new-uid", resourceVersion: "8" } };
    }),
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
